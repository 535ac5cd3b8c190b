/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as text. */
#include "tests/generator/program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    const char *fields;
    const char *words;
} kinds[OP_COUNT] = {
#define OP_ENTRY(kind, name, fields, words) {name, fields, words},
    OP_MAP(OP_ENTRY)
#undef OP_ENTRY
};

static const char *const stream_names[STREAM_COUNT] = {
    "s0", "s1", "s2",     "s3",     "s4",    "s5",
    "s6", "s7", "legacy", "thread", "unset", "ready",
};

const char *op_name(unsigned kind)
{
    return kinds[kind].name;
}

int op_has(unsigned kind, char field)
{
    return strchr(kinds[kind].fields, field) != NULL;
}

unsigned op_words(unsigned kind)
{
    const char *words = kinds[kind].words;
    unsigned count = *words != '\0';

    for (; *words != '\0'; words++) {
        count += *words == '|';
    }
    return count;
}

int op_word(unsigned kind, unsigned i, char *word, size_t size)
{
    const char *words = kinds[kind].words;
    size_t length;

    while (i > 0 && words != NULL) {
        words = strchr(words, '|');
        words = words != NULL ? words + 1 : NULL;
        i--;
    }
    if (words == NULL || *words == '\0') {
        return 0;
    }
    length = strcspn(words, "|");
    (void)snprintf(word, size, "%.*s", (int)length, words);
    return 1;
}

/* ---- write ------------------------------------------------------------------ */

static int print_field(const op *o, char field, char *text, size_t size)
{
    char word[64] = "";

    switch (field) {
    case 'b':
        return snprintf(text, size, " block=b%u", o->block);
    case 'c':
        return snprintf(text, size, " from=b%u", o->from);
    case 's':
        return snprintf(text, size, " stream=%s", stream_names[o->stream]);
    case 'r':
        return snprintf(text, size, " for=%s", stream_names[o->second]);
    case 'n':
        return snprintf(text, size, " bytes=%" PRIu64, o->bytes);
    case 'a':
        return snprintf(text, size, " align=%u", o->alignment);
    case 'k':
        return snprintf(text, size, " number=%u", o->number);
    default:
        (void)op_word(o->kind, o->word, word, sizeof(word));
        return snprintf(text, size, " as=%s", word);
    }
}

void op_print(const op *o, char *text, size_t size)
{
    const char *field = kinds[o->kind].fields;
    int length = snprintf(text, size, "t%u %s", o->thread, op_name(o->kind));

    for (; *field != '\0' && length >= 0 && (size_t)length < size; field++) {
        length += print_field(o, *field, text + length, size - (size_t)length);
    }
}

void program_print(const program *p, FILE *to)
{
    char line[160];
    size_t i;

    (void)fprintf(to,
                  "stack %s\nseed %" PRIu64 "\nschedule %" PRIu64
                  "\nthreads %u\ndevices %u\n",
                  p->stack, p->seed, p->schedule, p->threads, p->devices);
    if (p->memory != 0) {
        (void)fprintf(to, "memory %" PRIu64 "\n", p->memory);
    }
    if (p->order) {
        (void)fputs("order\n", to);
    }
    if (p->free_running) {
        (void)fputs("free_running\n", to);
    }
    if (p->abandon) {
        (void)fputs("abandon\n", to);
    }
    if (p->patient) {
        (void)fputs("patient\n", to);
    }
    for (i = 0; i < p->count; i++) {
        op_print(&p->ops[i], line, sizeof(line));
        (void)fprintf(to, "%s\n", line);
    }
}

/* ---- read ------------------------------------------------------------------- */

static int read_number(const char *text, uint64_t most, uint64_t *number)
{
    char *end;

    if (*text < '0' || *text > '9') {
        return 0;
    }
    *number = strtoull(text, &end, 10);
    return *end == '\0' && *number <= most;
}

/* A name of one letter and a number below `count`. */
static int read_slot(const char *text, char letter, unsigned count,
                     uint8_t *slot)
{
    uint64_t number;

    if (text[0] != letter || !read_number(text + 1, count - 1, &number)) {
        return 0;
    }
    *slot = (uint8_t)number;
    return 1;
}

static int read_stream(const char *text, uint8_t *stream)
{
    unsigned i;

    for (i = 0; i < STREAM_COUNT; i++) {
        if (strcmp(text, stream_names[i]) == 0) {
            *stream = (uint8_t)i;
            return 1;
        }
    }
    return 0;
}

static int read_word(op *o, const char *text)
{
    char word[64];
    unsigned i;

    for (i = 0; op_word(o->kind, i, word, sizeof(word)); i++) {
        if (strcmp(text, word) == 0) {
            o->word = (uint8_t)i;
            return 1;
        }
    }
    return 0;
}

static int read_field(op *o, char field, const char *text)
{
    static const struct {
        char field;
        const char *key;
    } keys[] = {{'b', "block="},  {'c', "from="},  {'s', "stream="},
                {'r', "for="},    {'n', "bytes="}, {'a', "align="},
                {'k', "number="}, {'w', "as="}};
    uint64_t number = 0;
    size_t i = 0;
    int good;

    while (keys[i].field != field) {
        i++;
    }
    if (strncmp(text, keys[i].key, strlen(keys[i].key)) != 0) {
        return 0;
    }
    text += strlen(keys[i].key);
    switch (field) {
    case 'b':
        return read_slot(text, 'b', PROGRAM_BLOCKS, &o->block);
    case 'c':
        return read_slot(text, 'b', PROGRAM_BLOCKS, &o->from);
    case 's':
        return read_stream(text, &o->stream);
    case 'r':
        return read_stream(text, &o->second);
    case 'n':
        return read_number(text, UINT64_MAX, &o->bytes);
    case 'a':
        good = read_number(text, UINT32_MAX, &number);
        o->alignment = (uint32_t)number;
        return good;
    case 'k':
        good = read_number(text, UINT32_MAX, &number);
        o->number = (uint32_t)number;
        return good;
    default:
        return read_word(o, text);
    }
}

static int read_op(op *o, char *line)
{
    char *rest = NULL;
    char *word = strtok_r(line, " ", &rest);
    const char *field;

    memset(o, 0, sizeof(*o));
    if (word == NULL || !read_slot(word, 't', PROGRAM_THREADS, &o->thread)) {
        return 0;
    }
    word = strtok_r(NULL, " ", &rest);
    while (word != NULL && o->kind < OP_COUNT &&
           strcmp(word, op_name(o->kind)) != 0) {
        o->kind++;
    }
    if (word == NULL || o->kind == OP_COUNT) {
        return 0;
    }
    for (field = kinds[o->kind].fields; *field != '\0'; field++) {
        word = strtok_r(NULL, " ", &rest);
        if (word == NULL || !read_field(o, *field, word)) {
            return 0;
        }
    }
    return strtok_r(NULL, " ", &rest) == NULL;
}

/* A line of the head. 0: it is none; -1: it is wrong. */
static int read_head(program *p, const char *line)
{
    uint64_t number = 0;

    if (strncmp(line, "stack ", 6) == 0) {
        return snprintf(p->stack, sizeof(p->stack), "%s", line + 6) <
                       (int)sizeof(p->stack)
                   ? 1
                   : -1;
    }
    if (strcmp(line, "order") == 0) {
        p->order = 1;
        return 1;
    }
    if (strcmp(line, "free_running") == 0) {
        p->free_running = 1;
        return 1;
    }
    if (strcmp(line, "abandon") == 0) {
        p->abandon = 1;
        return 1;
    }
    if (strcmp(line, "patient") == 0) {
        p->patient = 1;
        return 1;
    }
    if (strncmp(line, "seed ", 5) == 0) {
        return read_number(line + 5, UINT64_MAX, &p->seed) ? 1 : -1;
    }
    if (strncmp(line, "schedule ", 9) == 0) {
        return read_number(line + 9, UINT64_MAX, &p->schedule) ? 1 : -1;
    }
    if (strncmp(line, "memory ", 7) == 0) {
        return read_number(line + 7, UINT64_MAX, &p->memory) ? 1 : -1;
    }
    if (strncmp(line, "threads ", 8) == 0) {
        if (!read_number(line + 8, PROGRAM_THREADS, &number) || number == 0) {
            return -1;
        }
        p->threads = (unsigned)number;
        return 1;
    }
    if (strncmp(line, "devices ", 8) == 0) {
        if (!read_number(line + 8, 16, &number) || number == 0) {
            return -1;
        }
        p->devices = (unsigned)number;
        return 1;
    }
    return 0;
}

unsigned program_read(program *p, FILE *from, const char **why)
{
    char buffer[PROGRAM_STACK + 32];
    unsigned number = 0;

    memset(p, 0, sizeof(*p));
    p->threads = 1;
    p->devices = 1;
    while (fgets(buffer, sizeof(buffer), from) != NULL) {
        /* As it stands in a test's output. */
        char *line = strncmp(buffer, "# ", 2) == 0 ? buffer + 2 : buffer;
        int known;

        number++;
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] == '\0' || strncmp(line, "##", 2) == 0) {
            continue;
        }
        known = read_head(p, line);
        if (known < 0) {
            *why = "a value that is not possible";
            return number;
        }
        if (known > 0) {
            continue;
        }
        if (p->count == PROGRAM_MOST_OPS) {
            *why = "too many operations";
            return number;
        }
        if (!read_op(&p->ops[p->count], line) ||
            p->ops[p->count].thread >= p->threads) {
            *why = "no operation";
            return number;
        }
        p->count++;
    }
    if (p->stack[0] == '\0') {
        *why = "no stack";
        return number + 1;
    }
    return 0;
}

/* ---- what stacks say ------------------------------------------------------------- */

uint64_t program_bytes(const char *text)
{
    static const char units[] = "KMGT";
    char *end;
    uint64_t bytes = strtoull(text, &end, 10);
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;

    for (; unit != NULL && unit >= units; unit--) {
        bytes *= 1024;
    }
    return bytes;
}

uint64_t program_bound(const program *p, const char *option)
{
    const char *at = p->stack;
    uint64_t least = UINT64_MAX;

    while ((at = strstr(at, option)) != NULL) {
        char text[32];
        uint64_t bytes;

        at += strlen(option);
        (void)snprintf(text, sizeof(text), "%s", at);
        text[strcspn(text, " ")] = '\0';
        bytes = program_bytes(text);
        least = bytes < least ? bytes : least;
    }
    return least;
}
