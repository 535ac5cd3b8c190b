/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be written in a stack text, for people. Needs no driver.
 */
#include <string.h>

#include <cucoremr/stack.h>

#include "lib/error.h"
#include "lib/kind.h"
#include "lib/process.h"
#include "lib/registry.h"
#include "lib/text.h"

#define WIDTH 79

/* Columns of the names on the left: all of a kind's are put to the same. */
#define LEFT_MOST 28

static const char introduction[] =
    "A stack is one or more resources, each over the next; requests pass "
    "from\n"
    "left to right:\n"
    "\n"
    "    logging file=run.csv | limiting bytes=8GiB | device_pool device=0\n"
    "\n"
    "  NAME OPTION=VALUE ...      a resource; no blanks around '='\n"
    "  a | b                      a over b\n"
    "  a { b | c } { d }          a over two upstreams, b and d\n"
    "  OPTION=\"a value\"           quotes for blanks, '|', '{', '}' and "
    "'\"';\n"
    "                             in quotes, '\"' is \\\" and '\\' is \\\\\n"
    "\n"
    "  BYTES    4096, 64KiB, 1.5GiB, 8GB: KiB, MiB, GiB, TiB are powers of "
    "1024,\n"
    "           KB, MB, GB, TB of 1000; 8G is refused, since it is said of "
    "both;\n"
    "           what a fraction gives is rounded up to a multiple of 256\n"
    "  PERCENT  12.5%: of the device's memory, rounded down to one of 256\n"
    "  INTEGER  decimal, may be negative\n"
    "  YES/NO   yes or no, on or off, true or false, 1 or 0\n"
    "  FLAGS    names joined by '+', or none\n"
    "\n"
    "Resources:\n";

/* Words put into lines. */
typedef struct page {
    ccmr__text text;
    size_t indent; /* of lines that go on */
    size_t column; /* where the line is now */
} page;

static void put(page *p, const char *text)
{
    ccmr__text_add(&p->text, "%s", text);
    p->column += strlen(text);
}

static void end_line(page *p)
{
    put(p, "\n");
    p->column = 0;
}

/* Blanks up to a column, on the next line if this one is past it. */
static void indent(page *p, size_t column)
{
    p->indent = column;
    if (p->column > column) {
        end_line(p);
    }
    ccmr__text_add(&p->text, "%*s", (int)(column - p->column), "");
    p->column = column;
}

static void put_word(page *p, const char *word, size_t length)
{
    if (p->column > p->indent) {
        if (p->column + 1 + length > WIDTH) {
            end_line(p);
            indent(p, p->indent);
        } else {
            put(p, " ");
        }
    }
    ccmr__text_add(&p->text, "%.*s", (int)length, word);
    p->column += length;
}

static void put_words(page *p, const char *text)
{
    size_t length;

    for (text += strspn(text, " "); *text != '\0'; text += strspn(text, " ")) {
        length = strcspn(text, " ");
        put_word(p, text, length);
        text += length;
    }
}

static const char *type_name(const ccmr_option *option)
{
    switch (option->type) {
    case CCMR_OPTION_BYTES:
        return option->names != NULL && option->names[0] != '\0'
                   ? "BYTES or PERCENT"
                   : "BYTES";
    case CCMR_OPTION_INTEGER:
        return "INTEGER";
    case CCMR_OPTION_BOOLEAN:
        return "YES/NO";
    case CCMR_OPTION_TEXT:
        return "TEXT";
    case CCMR_OPTION_CHOICE:
        return "CHOICE";
    case CCMR_OPTION_FLAGS:
        return "FLAGS";
    }
    return "VALUE";
}

static size_t left_length(const ccmr_option *option)
{
    return strlen(option->name) + 1 + strlen(type_name(option));
}

/* "host, stream": the names of a choice, or of flags. */
static void put_names(page *p, const char *names)
{
    char word[64];
    ccmr__text text;
    const char *name;
    size_t length;
    size_t i;

    for (i = 0; (name = ccmr__names_get(names, i, &length)) != NULL; i++) {
        ccmr__text_init(&text, word, sizeof(word));
        ccmr__text_add(&text, "%.*s%s", (int)length, name,
                       name[length] == '|' ? "," : "");
        put_words(p, word);
    }
}

static void put_default(page *p, const ccmr_option *option)
{
    char words[128];
    ccmr__text text;

    ccmr__text_init(&text, words, sizeof(words));
    if (option->default_text == NULL) {
        ccmr__text_add(&text, "(required)");
    } else if (option->default_text[0] != '\0') {
        ccmr__text_add(&text, "(default %s)", option->default_text);
    }
    put_words(p, words);
}

static void put_option(page *p, const ccmr_option *option, size_t right)
{
    p->indent = 0;
    indent(p, 4);
    put(p, option->name);
    put(p, "=");
    put(p, type_name(option));
    if (p->column + 2 > right) {
        end_line(p);
    }
    indent(p, right);
    put_words(p, option->help);
    if (option->type == CCMR_OPTION_CHOICE ||
        option->type == CCMR_OPTION_FLAGS) {
        put_words(p, option->type == CCMR_OPTION_CHOICE ? "- one of"
                                                        : "- some of");
        put_names(p, option->names);
    }
    put_default(p, option);
    end_line(p);
}

static void put_upstreams(page *p, const ccmr_kind *kind)
{
    char words[96];
    ccmr__text text;

    ccmr__text_init(&text, words, sizeof(words));
    if (kind->max_upstreams == 0) {
        ccmr__text_add(&text, "(no upstream)");
    } else if (kind->min_upstreams == kind->max_upstreams) {
        ccmr__text_add(&text, "(over %zu upstream%s)", kind->max_upstreams,
                       kind->max_upstreams == 1 ? "" : "s");
    } else {
        ccmr__text_add(&text, "(over %zu to %zu upstreams)",
                       kind->min_upstreams, kind->max_upstreams);
    }
    put_words(p, words);
}

static void put_kind(page *p, const ccmr_kind *kind)
{
    size_t count = ccmr__kind_option_count(kind);
    size_t left = 0;
    size_t i;

    indent(p, 2);
    p->indent = 4;
    put(p, kind->name);
    put(p, ":");
    put_words(p, kind->help);
    put_upstreams(p, kind);
    end_line(p);
    for (i = 0; i < count; i++) {
        size_t length = left_length(&kind->options[i]);

        if (length > left && length <= LEFT_MOST) {
            left = length;
        }
    }
    for (i = 0; i < count; i++) {
        put_option(p, &kind->options[i], 4 + left + 2);
    }
}

static ccmr_status fail_unknown(const char *name)
{
    const char *meant = ccmr__kind_nearest(name, strlen(name));
    char buffer[64];
    ccmr__text shown;

    ccmr__text_init(&shown, buffer, sizeof(buffer));
    ccmr__text_add_shown(&shown, name, strlen(name));
    if (meant != NULL) {
        return ccmr__fail(CCMR_ERROR_UNKNOWN_NAME,
                          "unknown resource %s; did you mean '%s'?", buffer,
                          meant);
    }
    return ccmr__fail(CCMR_ERROR_UNKNOWN_NAME, "unknown resource %s", buffer);
}

ccmr_status ccmr_stack_help(const char *kind, char *text, size_t capacity,
                            size_t *length)
{
    ccmr_status status = ccmr__process_check();
    const ccmr_kind *known = NULL;
    page p = {.column = 0};
    size_t i;

    if (status != CCMR_SUCCESS) {
        return status;
    }
    if (text == NULL && capacity != 0) {
        return ccmr__fail(CCMR_ERROR_INVALID_ARGUMENT, "text is NULL");
    }
    if (kind != NULL) {
        known = ccmr__kind_find(kind);
        if (known == NULL) {
            return fail_unknown(kind);
        }
    }
    ccmr__text_init(&p.text, text, capacity);
    if (known != NULL) {
        put_kind(&p, known);
    } else {
        ccmr__text_add(&p.text, "%s", introduction);
        for (i = 0; (known = ccmr__kind_at(i)) != NULL; i++) {
            end_line(&p);
            put_kind(&p, known);
        }
    }
    if (length != NULL) {
        *length = p.text.length;
    }
    return CCMR_SUCCESS;
}
