/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every public function. The program of bad input compares the list with the
 * symbol map, so that it cannot be out of date.
 */
#ifndef CCMR_TESTS_SUPPORT_PUBLIC_H
#define CCMR_TESTS_SUPPORT_PUBLIC_H

#include <cucoremr/cucoremr.h>

#define PUBLIC_MAP(X)                                                         \
    X(ccmr_buffer_bytes)                                                      \
    X(ccmr_buffer_close)                                                      \
    X(ccmr_buffer_copy)                                                       \
    X(ccmr_buffer_copy_from_host)                                             \
    X(ccmr_buffer_copy_to_host)                                               \
    X(ccmr_buffer_create)                                                     \
    X(ccmr_buffer_describe)                                                   \
    X(ccmr_buffer_destroy)                                                    \
    X(ccmr_buffer_disown)                                                     \
    X(ccmr_buffer_fill)                                                       \
    X(ccmr_buffer_from_handle)                                                \
    X(ccmr_buffer_note_use)                                                   \
    X(ccmr_buffer_ptr)                                                        \
    X(ccmr_buffer_set_stream)                                                 \
    X(ccmr_device_count)                                                      \
    X(ccmr_device_current_resource)                                           \
    X(ccmr_device_describe)                                                   \
    X(ccmr_device_plain_create)                                               \
    X(ccmr_device_pool_create)                                                \
    X(ccmr_device_pool_from_handle)                                           \
    X(ccmr_device_pool_handle)                                                \
    X(ccmr_device_set_current_resource)                                       \
    X(ccmr_driver)                                                            \
    X(ccmr_error_set)                                                         \
    X(ccmr_host_create)                                                       \
    X(ccmr_init)                                                              \
    X(ccmr_kind_get)                                                          \
    X(ccmr_kind_register)                                                     \
    X(ccmr_last_error)                                                        \
    X(ccmr_legacy_pinned_create)                                              \
    X(ccmr_limiting_create)                                                   \
    X(ccmr_logging_create)                                                    \
    X(ccmr_logging_flush)                                                     \
    X(ccmr_pool_create)                                                       \
    X(ccmr_resource_allocate)                                                 \
    X(ccmr_resource_audit)                                                    \
    X(ccmr_resource_choose_free_stream)                                       \
    X(ccmr_resource_create)                                                   \
    X(ccmr_resource_deallocate)                                               \
    X(ccmr_resource_describe)                                                 \
    X(ccmr_resource_dump)                                                     \
    X(ccmr_resource_export_block)                                             \
    X(ccmr_resource_export_handle)                                            \
    X(ccmr_resource_grow)                                                     \
    X(ccmr_resource_hold_until_free)                                          \
    X(ccmr_resource_name)                                                     \
    X(ccmr_resource_note_use)                                                 \
    X(ccmr_resource_option_get)                                               \
    X(ccmr_resource_option_set)                                               \
    X(ccmr_resource_pin)                                                      \
    X(ccmr_resource_release)                                                  \
    X(ccmr_resource_retain)                                                   \
    X(ccmr_resource_set_access)                                               \
    X(ccmr_resource_stats)                                                    \
    X(ccmr_resource_trim)                                                     \
    X(ccmr_resource_unpin)                                                    \
    X(ccmr_resource_upstream)                                                 \
    X(ccmr_resource_would_fit)                                                \
    X(ccmr_stack_create)                                                      \
    X(ccmr_stack_create_over)                                                 \
    X(ccmr_stack_help)                                                        \
    X(ccmr_stack_print)                                                       \
    X(ccmr_statistics_create)                                                 \
    X(ccmr_statistics_pop)                                                    \
    X(ccmr_statistics_push)                                                   \
    X(ccmr_statistics_read)                                                   \
    X(ccmr_statistics_read_thread)                                            \
    X(ccmr_status_name)                                                       \
    X(ccmr_status_text)                                                       \
    X(ccmr_stream_create)                                                     \
    X(ccmr_stream_destroy)                                                    \
    X(ccmr_stream_from_protocol)                                              \
    X(ccmr_stream_ordered_create)                                             \
    X(ccmr_stream_register)                                                   \
    X(ccmr_stream_retire)                                                     \
    X(ccmr_stream_set_capturing)                                              \
    X(ccmr_stream_synchronize)                                                \
    X(ccmr_tracking_create)                                                   \
    X(ccmr_tracking_find)                                                     \
    X(ccmr_tracking_outstanding)                                              \
    X(ccmr_version)                                                           \
    X(ccmr_version_text)                                                      \
    X(ccmr_virtual_create)

#endif
