// The answer of an exchange as bytes, and who hears that a client left.

#include "actors/serve/http_answer.hpp"

#include <boost/test/unit_test.hpp>

using namespace troupe::actors::serve;

namespace {

http_request named(std::string id) {
  http_request asked;
  asked.id = std::move(id);
  return asked;
}

struct exchange {
  explicit exchange(http_answer::framing how = {}, std::size_t most_unsent = 1000)
    : answer(named("x"), how, most_unsent, [this] { ++woken; }) {}

  std::string body() {
    const auto all = answer.take().bytes;
    return all.substr(all.find("\r\n\r\n") + 4);
  }

  int woken = 0;
  http_answer answer;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_whole_answer_has_a_length_and_the_request_id) {
  exchange one;
  one.answer.add_headers({{"Vary", "Origin"}});
  one.answer.respond({429, "application/json", "{}", {{"Retry-After", "3"}}});
  const auto given = one.answer.take();
  BOOST_TEST(given.complete);
  BOOST_TEST(!given.cut);
  for (const auto* line : {"HTTP/1.1 429 Too Many Requests\r\n",
                           "\r\nContent-Length: 2\r\n",
                           "\r\nX-Request-Id: x\r\n",
                           "\r\nVary: Origin\r\n",
                           "\r\nRetry-After: 3\r\n",
                           "\r\nConnection: keep-alive\r\n"})
    BOOST_TEST(given.bytes.find(line) != std::string::npos, line);
  BOOST_TEST(given.bytes.ends_with("\r\n\r\n{}"));
  BOOST_TEST(one.answer.keeps_alive());
  one.answer.respond({200, {}, "again", {}});
  BOOST_TEST(one.answer.take().bytes.empty());
}

BOOST_AUTO_TEST_CASE(a_stream_is_cut_into_chunks_or_ends_with_its_connection) {
  exchange chunked;
  chunked.answer.begin_events();
  chunked.answer.send_event("{}");
  chunked.answer.finish();
  BOOST_TEST(chunked.body() == "a\r\ndata: {}\n\n\r\n0\r\n\r\n");
  BOOST_TEST(chunked.answer.keeps_alive());
  exchange old{{false, false, true}};
  old.answer.begin_events();
  old.answer.send_event("{}");
  old.answer.finish();
  BOOST_TEST(old.body() == "data: {}\n\n");
  BOOST_TEST(!old.answer.keeps_alive());
}

BOOST_AUTO_TEST_CASE(a_head_request_gets_no_body) {
  exchange one{{true, true, true}};
  one.answer.respond({200, "application/json", "{\"a\": 1}", {}});
  const auto given = one.answer.take();
  BOOST_TEST(given.bytes.find("Content-Length: 8") != std::string::npos);
  BOOST_TEST(given.bytes.ends_with("\r\n\r\n"));
}

BOOST_AUTO_TEST_CASE(one_wake_a_take_is_enough) {
  exchange one;
  one.answer.begin_events();
  one.answer.send_event("a");
  one.answer.send_event("b");
  BOOST_TEST(one.woken == 1);
  one.answer.take();
  one.answer.send_event("c");
  BOOST_TEST(one.woken == 2);
}

BOOST_AUTO_TEST_CASE(comments_are_sent_into_silence_only) {
  exchange one;
  one.answer.send_comment("early");
  BOOST_TEST(one.answer.take().bytes.empty());
  one.answer.begin_events();
  one.answer.send_comment("unsent bytes are a sign of life");
  const auto header = one.answer.take().bytes;
  BOOST_TEST(header.find("unsent") == std::string::npos);
  one.answer.sent(header.size());
  one.answer.send_comment("paused");
  BOOST_TEST(one.answer.take().bytes == "a\r\n: paused\n\n\r\n");
}

BOOST_AUTO_TEST_CASE(a_slow_reader_is_cut_off_when_its_buffer_is_full) {
  exchange one{{}, 600};
  int gone = 0;
  one.answer.on_gone([&] { ++gone; });
  one.answer.begin_events();
  std::size_t events = 0;
  while (!one.answer.take().cut && events < 1000) {
    one.answer.send_event("0123456789");
    ++events;
  }
  BOOST_TEST(events > 2u);
  BOOST_TEST(events < 30u);
  one.answer.detach();
  BOOST_TEST(gone == 1);
}

BOOST_AUTO_TEST_CASE(who_answers_hears_that_the_client_left_unless_all_was_said) {
  int gone = 0;
  exchange left;
  left.answer.on_gone([&] { ++gone; });
  left.answer.detach();
  BOOST_TEST(gone == 1);
  left.answer.respond({200, {}, "late", {}});
  BOOST_TEST(left.answer.take().bytes.empty());
  BOOST_TEST(left.woken == 0);
  exchange late;
  late.answer.detach();
  late.answer.on_gone([&] { ++gone; });
  BOOST_TEST(gone == 2);
  exchange complete;
  complete.answer.on_gone([&] { ++gone; });
  complete.answer.respond({});
  complete.answer.detach();
  BOOST_TEST(gone == 2);
}
