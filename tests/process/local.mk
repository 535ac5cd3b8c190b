# SPDX-License-Identifier: Apache-2.0

tap_tests += \
	tests/process/bad_input \
	tests/process/callback \
	tests/process/dlopen \
	tests/process/exit \
	tests/process/fork \
	tests/process/no_driver \
	tests/process/old_driver \
	tests/process/threads \
	tests/process/tracking_exit \
	tests/process/tracking_frames
tsan_tests += \
	tests/process/callback \
	tests/process/threads

process_calls = \
	tests/process/calls.c \
	tests/process/calls.h

tests_process_bad_input_SOURCES = \
	tests/process/bad_buffers.c \
	tests/process/bad_contract.c \
	tests/process/bad_counting.c \
	tests/process/bad_devices.c \
	tests/process/bad_input.c \
	tests/process/bad_input.h \
	tests/process/bad_others.c
tests_process_callback_SOURCES = tests/process/callback.c $(process_calls)
# The shared library is opened, not linked.
tests_process_dlopen_SOURCES = tests/process/dlopen.c
tests_process_dlopen_LDADD = tests/support/libccmr-tap.la
tests_process_exit_SOURCES = tests/process/exit.c $(process_calls)
tests_process_fork_SOURCES = tests/process/fork.c $(process_calls)
tests_process_no_driver_SOURCES = tests/process/no_driver.c
tests_process_old_driver_SOURCES = tests/process/old_driver.c
tests_process_threads_SOURCES = tests/process/threads.c
tests_process_tracking_exit_SOURCES = tests/process/tracking_exit.c
# The library's frames are told by the file that they are in.
tests_process_tracking_frames_SOURCES = tests/process/tracking_frames.c
tests_process_tracking_frames_LDADD = libcucoremr.la \
	tests/support/libccmr-tap.la
