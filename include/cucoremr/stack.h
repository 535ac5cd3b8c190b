/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of resources as text, and kinds of resources by name.
 *
 *   logging file=run.csv | limiting bytes=8GiB | device_pool device=0
 *
 * Requests flow from left to right. Several upstreams stand in braces:
 * failover { a | b } { c }. Blanks and line ends are free between the parts,
 * but for options, which are name=value. Values with blanks, '|', braces or
 * quotes, and empty ones, stand in double quotes, where \" is a quote and \\ a
 * backslash. Byte counts are 4096, 64KiB, 1.5GiB (KiB, MiB, GiB, TiB: powers
 * of 1024) or 8GB (KB, MB, GB, TB: powers of 1000); 8G is refused since it is
 * said of both; what a fraction gives is rounded up to a multiple of 256.
 *
 * A text has at most 65536 characters and 1024 resources, of which at most 64
 * are stacked on each other, and 32 braces are open at once.
 */
#ifndef CUCOREMR_STACK_H
#define CUCOREMR_STACK_H

#include <stddef.h>
#include <stdint.h>

#include <cucoremr/resource.h>

/** Types of an option's value. @since 0.1 */
typedef enum ccmr_option_type {
    CCMR_OPTION_BYTES = 0,   /**< 4096, 64KiB, 8GiB, or 50% if `percent` */
    CCMR_OPTION_INTEGER = 1, /**< decimal, may be negative */
    CCMR_OPTION_BOOLEAN = 2, /**< yes/no, on/off, true/false, 1/0 */
    CCMR_OPTION_TEXT = 3,    /**< any text */
    CCMR_OPTION_CHOICE = 4,  /**< one of `names` */
    CCMR_OPTION_FLAGS = 5    /**< some of `names`, joined by '+', or none */
} ccmr_option_type;

/**
 * One option of a kind of resource. All strings are static. Names are made of
 * a-z, 0-9 and '_', a letter first, at most 31 characters.
 * @since 0.1
 */
typedef struct ccmr_option {
    const char *name;
    ccmr_option_type type;
    /** Text that is used when the option is not given; NULL: it is required,
     * "": it is unset. */
    const char *default_text;
    /** CHOICE and FLAGS: names separated by '|'; value i or bit i. BYTES:
     * "%" if a percentage of the device's memory is accepted. */
    const char *names;
    const char *help; /**< one line */
} ccmr_option;

/** The value of one option, parsed. @since 0.1 */
typedef struct ccmr_option_value {
    int given;        /**< 1 if the text names the option */
    int set;          /**< 0 if neither given nor defaulted ("") */
    int percent;      /**< BYTES: `number` is hundredths of a percent, at most
                           10000 */
    int64_t integer;  /**< INTEGER, BOOLEAN, CHOICE (index) */
    uint64_t number;  /**< BYTES, FLAGS (bits) */
    const char *text; /**< as written, without quotes; lives while `create`
                           runs; NULL if not set */
} ccmr_option_value;

/**
 * A kind of resource that a stack text can name. @since 0.1
 */
typedef struct ccmr_kind ccmr_kind;

/** See ccmr_kind. @since 0.1 */
struct ccmr_kind {
    size_t size;                /**< sizeof(ccmr_kind) */
    const char *name;           /**< as an option's; describe's name as well */
    const char *help;           /**< one line */
    const ccmr_option *options; /**< at most 64, then one with a NULL name;
                                     NULL: none */
    size_t min_upstreams;       /**< 0 for a leaf */
    size_t max_upstreams;       /**< at most 64 */
    /**
     * Make one. `values` are in the order of `options`; `upstreams` are
     * borrowed: retain what is kept. On an error nothing was made, and
     * ccmr_error_set() may have said why; where that says `name=` of an option,
     * the error's column is that of its value.
     */
    ccmr_status (*create)(const ccmr_kind *kind,
                          const ccmr_option_value *values,
                          ccmr_resource *const *upstreams, size_t count,
                          ccmr_resource **resource);
    void *context; /**< for create's own use */
};

CCMR_BEGIN_DECLS

/**
 * Make the stack that a text describes.
 *
 * @param text      see above
 * @param resource  [out] the leftmost resource, with one reference
 *
 * Errors: CCMR_ERROR_SYNTAX, CCMR_ERROR_UNKNOWN_NAME (a kind, an option, a
 * choice, a flag; the message suggests the nearest),
 * CCMR_ERROR_INVALID_ARGUMENT (a value, an option that is missing or given
 * twice, too few or too many upstreams, NULL), or what a resource's creation
 * says; `column` of ccmr_last_error(), in bytes from 1, points at the culprit
 * and `resource` names it. The text is checked whole before anything is made.
 * Nothing was made. Any thread.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status
ccmr_stack_create(const char *text, ccmr_resource **resource);

/**
 * Make the stack that a text describes over an existing resource: the last
 * resource of the text is an adaptor without braces, and `upstream` (retained)
 * goes under it. Otherwise as ccmr_stack_create().
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_stack_create_over(
    const char *text, ccmr_resource *upstream, ccmr_resource **resource);

/**
 * Print a live stack as text that ccmr_stack_create() takes: every option
 * that is not at its default. Resources of kinds that are not known are
 * printed by name alone, options that a resource does not tell are left out.
 * `*length` (may be NULL) is the length needed without the final 0; text
 * longer than `capacity` - 1 is cut. CCMR_ERROR_OUT_OF_RANGE: more than a text
 * may have, or a resource is its own upstream. Any thread.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_stack_print(ccmr_resource *resource,
                                                     char *text,
                                                     size_t capacity,
                                                     size_t *length);

/**
 * Help for one kind (its name), or for all (NULL): every option with type,
 * default and meaning, in lines of less than 80 characters. Length and
 * capacity as ccmr_stack_print(). CCMR_ERROR_UNKNOWN_NAME: no such kind. Needs
 * no driver. Any thread.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_stack_help(const char *kind,
                                                    char *text,
                                                    size_t capacity,
                                                    size_t *length);

/**
 * Add a kind, which must live and stay as it is from then on: static, usually.
 * CCMR_ERROR_ALREADY_EXISTS: the name is taken; CCMR_ERROR_INVALID_ARGUMENT
 * names what is wrong with it; CCMR_ERROR_INVALID_STRUCT: its size. Kinds are
 * never removed. Any thread.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_kind_register(const ccmr_kind *kind);

/**
 * The i-th known kind, built-in ones first, CCMR_ERROR_OUT_OF_RANGE past the
 * last. A kind keeps its place. Any thread.
 * @since 0.1
 */
CCMR_API CCMR_NODISCARD ccmr_status ccmr_kind_get(size_t i,
                                                  const ccmr_kind **kind);

CCMR_END_DECLS

#endif /* CUCOREMR_STACK_H */
