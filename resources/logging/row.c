/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows as text, by hand: a printf of six values takes ten times as long.
 */
#include "resources/logging/row.h"

#include <assert.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/text.h"
#include "lib/thread.h"

/* A thread's id and its text, made at the thread's first row; and the stream
 * of its last row, which is often that of the next. */
typedef struct thread_name {
    ccmr_stream stream;
    int id;
    char text[12];
    char stream_text[2 + 16];
    unsigned char length;
    unsigned char stream_length; /* 0: none yet */
} thread_name;

static _Thread_local thread_name name CCMR__TLS_MODEL;

static const char two_digits[200] = "00010203040506070809"
                                    "10111213141516171819"
                                    "20212223242526272829"
                                    "30313233343536373839"
                                    "40414243444546474849"
                                    "50515253545556575859"
                                    "60616263646566676869"
                                    "70717273747576777879"
                                    "80818283848586878889"
                                    "90919293949596979899";

static inline char *put_two(char *to, unsigned value)
{
    memcpy(to, &two_digits[2 * value], 2);
    return to + 2;
}

static unsigned count_digits(uint64_t value)
{
    static const uint64_t powers[] = {
        UINT64_C(0),
        UINT64_C(10),
        UINT64_C(100),
        UINT64_C(1000),
        UINT64_C(10000),
        UINT64_C(100000),
        UINT64_C(1000000),
        UINT64_C(10000000),
        UINT64_C(100000000),
        UINT64_C(1000000000),
        UINT64_C(10000000000),
        UINT64_C(100000000000),
        UINT64_C(1000000000000),
        UINT64_C(10000000000000),
        UINT64_C(100000000000000),
        UINT64_C(1000000000000000),
        UINT64_C(10000000000000000),
        UINT64_C(100000000000000000),
        UINT64_C(1000000000000000000),
        UINT64_C(10000000000000000000),
    };
    /* 1233 / 4096 is the logarithm of 2, near enough for 64 bits. */
    unsigned bits = 64u - (unsigned)__builtin_clzll(value | 1);
    unsigned least = bits * 1233 >> 12;

    return least + (value >= powers[least]);
}

static char *put_decimal(char *to, uint64_t value)
{
    char *end = to + count_digits(value);
    char *at = end;

    while (value >= 100) {
        at -= 2;
        (void)put_two(at, (unsigned)(value % 100));
        value /= 100;
    }
    if (value >= 10) {
        (void)put_two(at - 2, (unsigned)value);
    } else {
        at[-1] = (char)('0' + value);
    }
    return end;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "CUDA's hosts are little-endian");

/* Eight hexadecimal digits of a number, the first one in the lowest byte:
 * each half of the digits moves up to twice its distance, three times. */
static uint64_t hex_digits(uint64_t value)
{
    uint64_t x = value & UINT64_C(0xffffffff);
    uint64_t letters;

    x = (x | x << 16) & UINT64_C(0x0000ffff0000ffff);
    x = (x | x << 8) & UINT64_C(0x00ff00ff00ff00ff);
    x = (x | x << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    letters =
        (x + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101);
    x += UINT64_C(0x3030303030303030) + letters * ('a' - '0' - 10);
    return __builtin_bswap64(x);
}

/* As printf's %p and a C++ stream's pointer, for what is not null. Writes up
 * to 15 characters beyond. */
static char *put_hex(char *to, uint64_t value)
{
    unsigned zeros = (unsigned)__builtin_clzll(value | 1) / 4;
    uint64_t words[2];

    value <<= 4 * zeros;
    words[0] = hex_digits(value >> 32);
    words[1] = hex_digits(value);
    to[0] = '0';
    to[1] = 'x';
    memcpy(to + 2, words, sizeof(words));
    return to + 2 + 16 - zeros;
}

static void __attribute__((noinline)) name_stream(ccmr_stream stream)
{
    char text[2 + 16 + 15];

    name.stream_length =
        (unsigned char)(put_hex(text, (uint64_t)(uintptr_t)stream) - text);
    memcpy(name.stream_text, text, sizeof(name.stream_text));
    name.stream = stream;
}

static char *put_stream(char *to, ccmr_stream stream)
{
    if (__builtin_expect(name.stream != stream || name.stream_length == 0,
                         0)) {
        name_stream(stream);
    }
    memcpy(to, name.stream_text, sizeof(name.stream_text));
    return to + name.stream_length;
}

static char *put_text(char *to, const char *text, size_t length)
{
    memcpy(to, text, length);
    return to + length;
}

#define PUT_LITERAL(to, text) put_text(to, text, sizeof(text) - 1)

static char *put_action(char *to, const ccmr__row *row)
{
    switch (row->action) {
    case CCMR__ROW_ALLOCATE:
        return put_hex(PUT_LITERAL(to, ",allocate,"),
                       (uint64_t)(uintptr_t)row->ptr);
    case CCMR__ROW_FREE:
        return put_hex(PUT_LITERAL(to, ",free,"),
                       (uint64_t)(uintptr_t)row->ptr);
    case CCMR__ROW_FAILURE:
        break;
    }
    return PUT_LITERAL(to, ",allocate failure,(nil)");
}

static char *put_columns(char *to, const ccmr__row *row)
{
    if ((row->columns & CCMR_LOG_DEVICE) != 0) {
        *to++ = ',';
        if (row->device < 0) {
            *to++ = '-';
        }
        to = put_decimal(
            to, (uint64_t)(row->device < 0 ? -row->device : row->device));
    }
    if ((row->columns & CCMR_LOG_ALIGNMENT) != 0) {
        *to++ = ',';
        to = put_decimal(to, row->alignment);
    }
    if ((row->columns & CCMR_LOG_CHOSEN) != 0) {
        *to++ = ',';
        if (row->chosen != CCMR_STREAM_UNSET) {
            to = put_hex(to, (uint64_t)(uintptr_t)row->chosen);
        }
    }
    if ((row->columns & CCMR_LOG_LATENCY) != 0) {
        *to++ = ',';
        if (row->latency != UINT64_MAX) {
            to = put_decimal(to, row->latency);
        }
    }
    return to;
}

static void __attribute__((cold, noinline)) name_thread(void)
{
    /* glibc before 2.30 has no gettid() */
    name.id = (int)syscall(SYS_gettid);
    name.length =
        (unsigned char)(put_decimal(name.text, (uint64_t)name.id) - name.text);
}

int ccmr__row_thread(void)
{
    if (__builtin_expect(name.id == 0, 0)) {
        name_thread();
    }
    return name.id;
}

void ccmr__row_format(ccmr__row_text *to, const ccmr__row *row)
{
    char *at = to->text;

    (void)ccmr__row_thread();
    memcpy(at, name.text, sizeof(name.text));
    at += name.length;
    *at++ = ',';
    to->time = (size_t)(at - to->text);
    at = put_action(at + CCMR__ROW_TIME, row);
    *at++ = ',';
    at = put_decimal(at, row->bytes);
    *at++ = ',';
    at = put_stream(at, row->stream);
    if (row->columns != 0) {
        at = put_columns(at, row);
    }
    *at++ = '\n';
    to->length = (size_t)(at - to->text);
    assert(to->length <=
           (row->columns == 0 ? CCMR__ROW_MOST_PLAIN : CCMR__ROW_MOST));
}

size_t ccmr__row_header(char *to, size_t capacity, unsigned columns)
{
    ccmr__text text;

    ccmr__text_init(&text, to, capacity);
    ccmr__text_add(&text, "Thread,Time,Action,Pointer,Size,Stream%s%s%s%s\n",
                   (columns & CCMR_LOG_DEVICE) != 0 ? ",Device" : "",
                   (columns & CCMR_LOG_ALIGNMENT) != 0 ? ",Alignment" : "",
                   (columns & CCMR_LOG_CHOSEN) != 0 ? ",Chosen" : "",
                   (columns & CCMR_LOG_LATENCY) != 0 ? ",Latency" : "");
    assert(text.length < capacity);
    return text.length;
}

void ccmr__row_second(char *to, uint64_t second)
{
    unsigned day = (unsigned)(second % 86400);

    to = put_two(to, day / 3600);
    *to++ = ':';
    to = put_two(to, day / 60 % 60);
    *to++ = ':';
    to = put_two(to, day % 60);
    *to = '.';
}

void ccmr__row_micros(char *to, uint32_t micros)
{
    to = put_two(to, micros / 10000);
    to = put_two(to, micros / 100 % 100);
    (void)put_two(to, micros % 100);
}
