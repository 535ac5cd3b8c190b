/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fidelity/second.h"

#include "tests/fidelity/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE_FD = 9, /* the line, in the second process */
    START_LIMIT_MS = 15000,
    STEP_LIMIT_MS = 4000,
    END_LIMIT_MS = 4000,
};

extern char **environ;

static int line = -1;
static pid_t second = -1;

/* ---- the line ---- */

static bool wait_for_line(int limit_ms)
{
    struct pollfd poll_fd = {line, POLLIN, 0};
    int ready;

    do {
        ready = poll(&poll_fd, 1, limit_ms);
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
}

bool second_send(const void *bytes, size_t size, int fd)
{
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec part;
    struct msghdr message;
    char copy[512];

    if (size > sizeof copy) {
        return false;
    }
    memcpy(copy, bytes, size);
    part.iov_base = copy;
    part.iov_len = size;
    memset(&message, 0, sizeof message);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fd >= 0) {
        struct cmsghdr *header;

        memset(control, 0, sizeof control);
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    return sendmsg(line, &message, MSG_NOSIGNAL) == (ssize_t)size;
}

static bool receive(void *bytes, size_t size, int *fd, int limit_ms)
{
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {bytes, size};
    struct msghdr message;
    struct cmsghdr *header;

    if (!wait_for_line(limit_ms)) {
        return false;
    }
    memset(&message, 0, sizeof message);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (recvmsg(line, &message, MSG_CMSG_CLOEXEC) != (ssize_t)size) {
        return false;
    }
    header = CMSG_FIRSTHDR(&message);
    if (fd != NULL) {
        *fd = -1;
        if (header != NULL && header->cmsg_type == SCM_RIGHTS) {
            memcpy(fd, CMSG_DATA(header), sizeof *fd);
        }
    }
    return true;
}

/* ---- the first process ---- */

static bool spawn(int end, const char *errand)
{
    char driver[8];
    char program[16] = "fidelity";
    char option_driver[16] = "--driver";
    char option_second[16] = "--second";
    char name[64];
    char topic[64];
    char this_case[64];
    char *arguments[] = {program, option_driver, driver,    option_second,
                         name,    topic,         this_case, NULL};
    posix_spawn_file_actions_t actions;
    int ret;

    snprintf(driver, sizeof driver, "%s",
             driver_simulation() != NULL ? "sim" : "cuda");
    snprintf(name, sizeof name, "%s", errand);
    snprintf(topic, sizeof topic, "%s", facts_topic());
    snprintf(this_case, sizeof this_case, "%s", facts_case());
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return false;
    }
    ret = posix_spawn_file_actions_adddup2(&actions, end, LINE_FD);
    if (ret == 0) {
        ret = posix_spawn(&second, "/proc/self/exe", &actions, NULL, arguments,
                          environ);
    }
    posix_spawn_file_actions_destroy(&actions);
    return ret == 0;
}

bool second_start(const char *errand)
{
    int ends[2];
    char word;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        fact("second", "no line");
        return false;
    }
    line = ends[0];
    if (!spawn(ends[1], errand)) {
        close(ends[1]);
        close(line);
        line = -1;
        second = -1;
        fact("second", "no process");
        return false;
    }
    close(ends[1]);
    if (!receive(&word, 1, NULL, START_LIMIT_MS)) {
        fact("second", "does not start");
        second_end();
        return false;
    }
    return true;
}

bool second_done(void)
{
    char word;

    if (receive(&word, 1, NULL, STEP_LIMIT_MS)) {
        return true;
    }
    fact("step", "not done");
    return false;
}

void second_end(void)
{
    const struct timespec pause = {0, 2000000};
    int status = 0;
    int waited = 0;

    if (second < 0) {
        return;
    }
    close(line);
    line = -1;
    while (waitpid(second, &status, WNOHANG) == 0) {
        if (waited == END_LIMIT_MS) {
            fact("second", "hangs");
            kill(second, SIGKILL);
        }
        nanosleep(&pause, NULL);
        waited += 2;
    }
    if (WIFSIGNALED(status) && waited <= END_LIMIT_MS) {
        fact("second", "crashes");
    } else if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
        fact("second", "exits with %d", WEXITSTATUS(status));
    }
    second = -1;
}

/* ---- the second process ---- */

bool second_take(void *bytes, size_t size, int *fd)
{
    return receive(bytes, size, fd, START_LIMIT_MS);
}

void second_say_done(void)
{
    const char word = 'd';

    second_send(&word, 1, -1);
}

static const struct fidelity_errand *find_errand(
    const struct fidelity_errand *list, const char *name)
{
    while (list->name != NULL && strcmp(list->name, name) != 0) {
        list++;
    }
    return list->name != NULL ? list : NULL;
}

int second_run(const char *errand, const char *topic, const char *name)
{
    const struct fidelity_errand *found = find_errand(sharing_errands, errand);

    if (found == NULL) {
        found = find_errand(ipc_errands, errand);
    }
    if (found == NULL) {
        return 1;
    }
    line = LINE_FD;
    fcntl(line, F_SETFD, FD_CLOEXEC);
    facts_begin(topic, name);
    second_say_done();
    found->run();
    return 0;
}
