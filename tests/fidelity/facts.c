/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fidelity/facts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const char *current_topic = "";
static const char *current_case = "";
static bool ruined;

void facts_begin(const char *topic, const char *name)
{
    current_topic = topic;
    current_case = name;
}

const char *facts_topic(void)
{
    return current_topic;
}

const char *facts_case(void)
{
    return current_case;
}

/* One write a line, so that nothing is lost or torn when the process dies. */
static void put(const char *line, size_t length)
{
    while (length > 0) {
        ssize_t done = write(STDOUT_FILENO, line, length);

        if (done < 0) {
            if (errno == EINTR) {
                continue;
            }
            return;
        }
        line += done;
        length -= (size_t)done;
    }
}

static void put_line(char *line, size_t room, int length)
{
    size_t used = length < 0 ? 0 : (size_t)length;

    if (used > room - 2) {
        used = room - 2;
    }
    line[used++] = '\n';
    put(line, used);
}

void fact(const char *what, const char *format, ...)
{
    char value[256];
    char line[512];
    va_list args;

    va_start(args, format);
    vsnprintf(value, sizeof value, format, args);
    va_end(args);
    put_line(line, sizeof line,
             snprintf(line, sizeof line, "%s.%s.%s = %s", current_topic,
                      current_case, what, value));
}

void fact_result(const char *what, CUresult res)
{
    fact(what, "%s", result_name(res));
}

void fact_number(const char *what, long long value)
{
    fact(what, "%lld", value);
}

void fact_yes(const char *what, bool value)
{
    fact(what, "%s", value ? "yes" : "no");
}

void facts_ruin(void)
{
    ruined = true;
}

bool facts_ruined(void)
{
    return ruined;
}

void facts_note(const char *format, ...)
{
    char line[512];
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    put_line(line, sizeof line, length);
}
