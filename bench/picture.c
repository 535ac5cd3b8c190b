/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/picture.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

bool picture_begin(picture *made, const char *path)
{
    static const struct {
        const char *ending;
        const char *terminal;
    } known[] = {
        {".svg", "svg dynamic background 'white'"},
        {".png", "pngcairo"},
        {".pdf", "pdfcairo"},
    };
    const char *dot = strrchr(path, '.');

    made->path = path;
    for (size_t i = 0; dot != NULL && i < 3; i++) {
        int length = (int)(dot - path);

        if (strcmp(dot, known[i].ending) == 0) {
            made->terminal = known[i].terminal;
            return snprintf(made->data, PATH_MAX, "%.*s.dat", length, path) <
                       PATH_MAX &&
                   snprintf(made->script, PATH_MAX, "%.*s.gp", length, path) <
                       PATH_MAX;
        }
    }
    (void)fprintf(stderr,
                  "cucoremr-bench: --plot %s: a name that ends in .svg, .png "
                  "or .pdf is expected\n",
                  path);
    return false;
}

void picture_quote(FILE *to, const char *text)
{
    (void)fputc('"', to);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            (void)fputc('\\', to);
        }
        (void)fputc(*text == '\n' ? ' ' : *text, to);
    }
    (void)fputc('"', to);
}

void picture_panels(const picture *of, FILE *to, size_t rows)
{
    if (strcmp(of->terminal, "pdfcairo") == 0) {
        (void)fprintf(to, "set terminal pdfcairo size 11in,%zuin\n", 4 * rows);
    } else {
        (void)fprintf(to, "set terminal %s size 1100,%zu\n", of->terminal,
                      400 * rows);
    }
    (void)fputs("set output ", to);
    picture_quote(to, of->path);
    (void)fprintf(to, "\nset multiplot layout %zu,1\n", rows);
}

bool picture_draw(const picture *of)
{
    char name[] = "gnuplot";
    char script[PATH_MAX];
    char *arguments[] = {name, script, NULL};
    int status = 0;
    pid_t child;
    int ret;

    (void)strcpy(script, of->script);
    ret = posix_spawnp(&child, name, NULL, NULL, arguments, environ);
    if (ret == ENOENT) {
        (void)fprintf(stderr,
                      "cucoremr-bench: gnuplot is not installed, so that %s "
                      "is not there; `gnuplot %s` will make it\n",
                      of->path, of->script);
        return true;
    }
    if (ret != 0) {
        (void)fprintf(stderr, "cucoremr-bench: gnuplot: %s\n", strerror(ret));
        return false;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        (void)fprintf(stderr, "cucoremr-bench: gnuplot failed on %s\n",
                      of->script);
        return false;
    }
    return true;
}
