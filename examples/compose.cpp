// SPDX-License-Identifier: Apache-2.0
//
// The same as compose.c in C++17: a stack composed in code, and two buffers on
// two streams, with a log of what happened. What is released at the end of a
// scope is held by std::unique_ptr.
//
//     c++ -std=c++17 -o compose compose.cpp
//         $(pkg-config --cflags --libs libcucoremr)
//     ./compose [FILE]                       on the CUDA driver
//     CUCOREMR_DRIVER=sim ./compose [FILE]   without a GPU
//
// The log goes to the file, or without one to the standard output.

#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <cucoremr/cucoremr.h>

namespace
{

constexpr std::size_t bytes = std::size_t{1} << 20;

void check(ccmr_status status, const char *what)
{
    if (status != CCMR_SUCCESS) {
        throw std::runtime_error(std::string{what} + ": " +
                                 ccmr_status_name(status) + ": " +
                                 ccmr_last_error()->message);
    }
}

struct release {
    void operator()(ccmr_resource *resource) const
    {
        ccmr_resource_release(resource);
    }
    void operator()(ccmr_buffer *buffer) const
    {
        // Refused closes are reported, never thrown, where things end.
        if (ccmr_buffer_destroy(buffer) != CCMR_SUCCESS) {
            std::cerr << ccmr_last_error()->message << '\n';
        }
    }
};

using resource = std::unique_ptr<ccmr_resource, release>;
using buffer = std::unique_ptr<ccmr_buffer, release>;

class stream
{
  public:
    explicit stream(int device)
    {
        check(
            ccmr_stream_create(device, CCMR_STREAM_FLAG_NON_BLOCKING, &handle),
            "stream");
    }
    ~stream()
    {
        if (ccmr_stream_destroy(handle) != CCMR_SUCCESS) {
            std::cerr << ccmr_last_error()->message << '\n';
        }
    }
    stream(const stream &) = delete;
    stream &operator=(const stream &) = delete;
    operator ccmr_stream() const
    {
        return handle;
    }

  private:
    ccmr_stream handle = nullptr;
};

// Where rows go if no file is named.
int print_rows(void *, const char *rows, std::size_t length)
{
    std::cout << std::string_view{rows, length};
    return std::cout ? 0 : -1;
}

// logging | limiting | device_pool. Each adaptor keeps its upstream.
resource make_stack(const char *log)
{
    ccmr_logging_options options{};
    ccmr_resource *made = nullptr;

    check(ccmr_device_pool_create(0, nullptr, &made), "device_pool");
    resource pool{made};
    check(ccmr_limiting_create(pool.get(), 64 * bytes, &made), "limiting");
    resource limited{made};
    options.size = sizeof(options);
    if (log != nullptr) {
        options.file = log;
    } else {
        options.sink = print_rows;
    }
    options.columns = CCMR_LOG_DEVICE;
    check(ccmr_logging_create(limited.get(), &options, &made), "logging");
    return resource{made};
}

buffer make_buffer(const resource &stack, const stream &order)
{
    ccmr_buffer *made = nullptr;

    check(ccmr_buffer_create(stack.get(), bytes, nullptr, order, &made),
          "buffer");
    return buffer{made};
}

void run(const char *log)
{
    const resource stack = make_stack(log);
    const stream one{0};
    const stream two{0};
    std::vector<unsigned char> back(bytes);
    {
        const buffer first = make_buffer(stack, one);
        const buffer second = make_buffer(stack, two);

        check(ccmr_buffer_fill(first.get(), 0, bytes, 0x5A, 1, one), "fill");
        // The second stream must come after the first: here by waiting.
        check(ccmr_stream_synchronize(one, 0), "synchronize");
        check(ccmr_buffer_copy(second.get(), 0, first.get(), 0, bytes, two),
              "copy");
        check(
            ccmr_buffer_copy_to_host(second.get(), 0, back.data(), bytes, two),
            "copy to host");
        check(ccmr_stream_synchronize(two, 0), "synchronize");
        // The first was last used on the second stream: its free goes there.
        // The second knows its own stream.
        check(ccmr_buffer_close(first.get(), two), "close");
    }
    std::cout << "bytes:   " << int{back.front()} << " ... "
              << int{back.back()} << '\n';
    std::cout << "log:     " << (log != nullptr ? log : "") << '\n';
    check(ccmr_logging_flush(stack.get()), "flush");
}

} // namespace

int main(int argc, char **argv)
{
    try {
        run(argc > 1 ? argv[1] : nullptr);
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
    return 0;
}
