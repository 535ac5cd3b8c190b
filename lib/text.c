/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text put together piece by piece, and names.
 */
#include "lib/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* As much of somebody's text as a message shows, without quotes and dots. */
#define SHOWN_MOST 40

#define NAME_MOST 31

void ccmr__text_init(ccmr__text *text, char *start, size_t capacity)
{
    text->start = start;
    text->capacity = capacity;
    text->length = 0;
    if (capacity != 0) {
        start[0] = '\0';
    }
}

void ccmr__text_add_list(ccmr__text *text, const char *format, va_list list)
{
    size_t room = 0;
    char *end = NULL;
    int ret;

    if (text->length < text->capacity) {
        room = text->capacity - text->length;
        end = text->start + text->length;
    }
    ret = vsnprintf(end, room, format, list);
    if (ret > 0) {
        text->length += (size_t)ret;
    }
}

void ccmr__text_add(ccmr__text *text, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    ccmr__text_add_list(text, format, list);
    va_end(list);
}

void ccmr__text_add_shown(ccmr__text *text, const char *shown, size_t length)
{
    char copy[SHOWN_MOST + 1];
    size_t size = length;
    size_t i;

    if (size > SHOWN_MOST) {
        size = SHOWN_MOST;
        /* Not in the middle of a character of several bytes. */
        while (size > SHOWN_MOST - 4 &&
               ((unsigned char)shown[size] & 0xC0u) == 0x80u) {
            size--;
        }
    }
    for (i = 0; i < size; i++) {
        unsigned char c = (unsigned char)shown[i];

        copy[i] = c < ' ' || c == 0x7F ? '?' : shown[i];
    }
    copy[size] = '\0';
    ccmr__text_add(text, "'%s%s'", copy, size < length ? "..." : "");
}

void ccmr__text_add_bytes(ccmr__text *text, uint64_t bytes)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    size_t i = 0;

    while (bytes != 0 && bytes % 1024 == 0 &&
           i + 1 < sizeof(units) / sizeof(units[0])) {
        bytes /= 1024;
        i++;
    }
    ccmr__text_add(text, "%" PRIu64 "%s", bytes, units[i]);
}

void ccmr__text_add_flags(ccmr__text *text, const char *names, uint64_t bits)
{
    const char *separator = "";
    const char *name;
    size_t length;
    size_t i;

    if (bits == 0) {
        ccmr__text_add(text, "none");
        return;
    }
    for (i = 0; i < 64; i++) {
        name = ccmr__names_get(names, i, &length);
        if (name == NULL) {
            break;
        }
        if ((bits >> i & 1) != 0) {
            ccmr__text_add(text, "%s%.*s", separator, (int)length, name);
            separator = "+";
            bits &= ~(UINT64_C(1) << i);
        }
    }
    if (bits != 0) {
        ccmr__text_add(text, "%s0x%" PRIx64, separator, bits);
    }
}

ccmr_status ccmr__text_give(const char *text, char *to, size_t capacity,
                            size_t *length)
{
    size_t needed = strlen(text);

    if (capacity != 0) {
        size_t size = needed < capacity ? needed : capacity - 1;

        memcpy(to, text, size);
        to[size] = '\0';
    }
    if (length != NULL) {
        *length = needed;
    }
    return CCMR_SUCCESS;
}

const char *ccmr__names_get(const char *names, size_t i, size_t *length)
{
    if (names == NULL || names[0] == '\0') {
        return NULL;
    }
    for (; i != 0; i--) {
        names = strchr(names, '|');
        if (names == NULL) {
            return NULL;
        }
        names++;
    }
    *length = strcspn(names, "|");
    return names;
}

int ccmr__name_is_good(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    size_t length = strnlen(name, NAME_MOST + 1);

    return length != 0 && length <= NAME_MOST &&
           strchr(letters, name[0]) != NULL &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == length;
}
