/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text at all, given to the parser of stacks. What it makes must print as
 * a text that makes the same; what it refuses must leave nothing behind and
 * say where the fault is. The kinds are dummies, so that no text can touch a
 * file or a device.
 *
 * With libFuzzer:
 *
 *     clang -fsanitize=fuzzer,address,undefined -DCCMR_LIBFUZZER ...
 *     stack_fuzz -dict=fuzz/stack.dict CORPUS
 *
 * With any compiler, and in `make check`, as a program of its own:
 *
 *     stack_fuzz [-runs=N] [-seed=N] [FILE ...]
 *
 * replays the files, or else texts of its own, and then tries N mutations of
 * them. A text that fails is printed; the same seed finds it again.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/registry.h"
#include "tests/support/kinds.h"

/* The registry of this program: none but the dummies. */
const ccmr_kind *const ccmr__builtin_kinds[] = {NULL};
const size_t ccmr__builtin_kind_count = 0;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Beyond this, what is printed could be longer than a text may be. */
#define SIZE_MOST 4096

static const char *text_now = "";

static void fail(const char *what, const char *more)
{
    const char *c;

    (void)fprintf(stderr, "%s: %s\n# text: \"", what, more);
    for (c = text_now; *c != '\0'; c++) {
        if (*c < ' ' || *c == '"' || *c == '\\' || *c == 0x7F) {
            (void)fprintf(stderr, "\\%03o", (unsigned char)*c);
        } else {
            (void)fputc(*c, stderr);
        }
    }
    (void)fprintf(stderr, "\"\n");
    abort();
}

static char *print(ccmr_resource *resource)
{
    size_t length = 0;
    char *text;

    if (ccmr_stack_print(resource, NULL, 0, &length) != CCMR_SUCCESS) {
        fail("cannot be printed", ccmr_last_error()->message);
    }
    text = malloc(length + 1);
    if (text == NULL) {
        fail("no memory", "");
    }
    if (ccmr_stack_print(resource, text, length + 1, NULL) != CCMR_SUCCESS) {
        fail("cannot be printed twice", ccmr_last_error()->message);
    }
    if (strlen(text) != length) {
        fail("prints with another length than it says", text);
    }
    return text;
}

/* Print, make, print: twice the same? One kind does not tell its options. */
static void check_round_trip(ccmr_resource *resource)
{
    ccmr_resource *other = NULL;
    char *first = print(resource);
    char *second;

    if (strstr(first, "mute") == NULL) {
        if (ccmr_stack_create(first, &other) != CCMR_SUCCESS) {
            fail("prints as what is refused", first);
        }
        second = print(other);
        if (strcmp(first, second) != 0) {
            fail("prints differently the second time", second);
        }
        free(second);
        ccmr_resource_release(other);
    }
    free(first);
}

static void check_failure(ccmr_status status, const char *text)
{
    const ccmr_error_detail *detail = ccmr_last_error();

    if (detail->status != status) {
        fail("the detail is of another failure", detail->message);
    }
    if (detail->message[0] == '\0') {
        fail("no message", ccmr_status_name(status));
    }
    if (detail->column < 1 || (size_t)detail->column > strlen(text) + 1) {
        fail("the column is outside of the text", detail->message);
    }
}

static void check_text(const char *text, ccmr_resource *over)
{
    ccmr_resource *const unwritten = (ccmr_resource *)&dummy_live;
    ccmr_resource *resource = unwritten;
    long live = dummy_live;
    ccmr_status status;

    status = over == NULL ? ccmr_stack_create(text, &resource)
                          : ccmr_stack_create_over(text, over, &resource);
    if (status == CCMR_SUCCESS) {
        check_round_trip(resource);
        ccmr_resource_release(resource);
    } else {
        if (resource != unwritten) {
            fail("an output was written", ccmr_last_error()->message);
        }
        check_failure(status, text);
    }
    if (dummy_live != live) {
        fail("resources were left", "");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static ccmr_resource *leaf;
    char *text;

    if (size > SIZE_MOST) {
        return 0;
    }
    if (leaf == NULL && (!dummy_register() ||
                         ccmr_stack_create("leaf", &leaf) != CCMR_SUCCESS)) {
        fail("cannot begin", ccmr_last_error()->message);
    }
    /* Of exactly this size, so that a sanitizer sees a step beyond. */
    text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    if (size != 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    text_now = text;
    check_text(text, NULL);
    check_text(text, leaf);
    text_now = "";
    free(text);
    return 0;
}

#ifndef CCMR_LIBFUZZER

#include "tests/support/tap.h"

static const char *const seeds[] = {
    "leaf",
    "over limit=8GiB | needy file=run.csv | leaf count=3",
    "over note=\"a | b { c } \\\"d\\\" \\\\\" | either { leaf } { over | leaf "
    "}",
    "several { over | leaf } { leaf bytes=12.5% fast=on } { refuse how=unsaid "
    "}",
    "leaf bytes=0.05GiB count=-9223372036854775808 access=both "
    "columns=device+chosen label=x",
    "either { either { either { several { leaf } { leaf } { leaf } } } }",
    "mute file=\"\" | over | refuse how=nothing | leaf",
};

static const char *const pieces[] = {
    " ",     "|",       "{",        "}",        "\"",       "\\",
    "=",     "\n",      "leaf",     "over",     "needy",    "either",
    "mute",  "several", "refuse",   "file=x",   "limit=",   "note=\"",
    "1",     "9999999", "KiB",      "GB",       "%",        "-",
    "+",     "none",    "access=",  "device+",  "columns=", "fast=yes",
    "label", "how=",    "{ leaf }", "\xC3\xA4", "over | ",  ".5",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A text being mutated. */
typedef struct input {
    char bytes[SIZE_MOST];
    size_t size;
} input;

static uint64_t state;

/* xorshift64*: good enough, and the same everywhere. */
static size_t below(size_t n)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (size_t)((state * UINT64_C(2685821657736338717)) >> 33) % n;
}

static void insert(input *in, size_t at, const char *bytes, size_t size)
{
    if (in->size + size > sizeof(in->bytes)) {
        return;
    }
    memmove(in->bytes + at + size, in->bytes + at, in->size - at);
    memcpy(in->bytes + at, bytes, size);
    in->size += size;
}

static void cut(input *in, size_t at, size_t size)
{
    memmove(in->bytes + at, in->bytes + at + size, in->size - at - size);
    in->size -= size;
}

static void mutate(input *in)
{
    size_t at = below(in->size + 1);
    size_t size = below(in->size - at + 1);
    const char *piece = pieces[below(COUNT(pieces))];
    char copy[64];
    char byte;

    switch (below(6)) {
    case 0:
        cut(in, at, size);
        break;
    case 1:
        byte = (char)below(256);
        insert(in, at, &byte, 1);
        break;
    case 2:
        if (at < in->size) {
            in->bytes[at] = (char)below(256);
        }
        break;
    case 3:
        size = size < sizeof(copy) ? size : sizeof(copy);
        memcpy(copy, in->bytes + at, size);
        insert(in, below(in->size + 1), copy, size);
        break;
    default:
        insert(in, at, piece, strlen(piece));
        break;
    }
}

static void run(const input *in)
{
    (void)LLVMFuzzerTestOneInput((const uint8_t *)in->bytes, in->size);
}

static int read_file(const char *path, input *in)
{
    FILE *file = fopen(path, "rb");

    if (file == NULL) {
        return 0;
    }
    in->size = fread(in->bytes, 1, sizeof(in->bytes), file);
    (void)fclose(file);
    return 1;
}

static void set_input(input *in, const char *text)
{
    in->size = strlen(text);
    memcpy(in->bytes, text, in->size);
}

static void get_start(input *in, char *const *files, size_t count, size_t i)
{
    if (count == 0) {
        set_input(in, seeds[i % COUNT(seeds)]);
    } else if (!read_file(files[i % count], in)) {
        tap_bail_out("%s cannot be read", files[i % count]);
    }
}

static void run_mutations(char *const *files, size_t count, unsigned long runs)
{
    unsigned long i;
    input in;
    size_t j;

    for (i = 0; i < runs; i++) {
        get_start(&in, files, count, below(1000));
        for (j = below(8) + 1; j != 0; j--) {
            mutate(&in);
        }
        run(&in);
    }
}

int main(int argc, char **argv)
{
    unsigned long runs = 20000;
    unsigned long seed = 1;
    size_t count;
    input in;
    size_t i;
    int arg;

    for (arg = 1; arg < argc && argv[arg][0] == '-'; arg++) {
        if (strncmp(argv[arg], "-runs=", 6) == 0) {
            runs = strtoul(argv[arg] + 6, NULL, 10);
        } else if (strncmp(argv[arg], "-seed=", 6) == 0) {
            seed = strtoul(argv[arg] + 6, NULL, 10);
        } else {
            tap_bail_out("%s is not understood", argv[arg]);
        }
    }
    count = (size_t)(argc - arg);
    for (i = 0; i < (count != 0 ? count : COUNT(seeds)); i++) {
        get_start(&in, argv + arg, count, i);
        run(&in);
    }
    tap_pass("%zu texts as they are", i);
    state = (uint64_t)seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
    run_mutations(argv + arg, count, runs);
    tap_pass("%lu mutations from seed %lu, %ld resources", runs, seed,
             dummy_made);
    return tap_finish();
}

#endif /* CCMR_LIBFUZZER */
