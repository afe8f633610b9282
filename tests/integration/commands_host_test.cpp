// The commands about a host and about the program itself: doctor, model, bench, --help, --version.
#include "tests/support/cluster.hpp"
#include "tests/support/tiny_model.hpp"

#include <boost/test/unit_test.hpp>

#include <arpa/inet.h>
#include <filesystem>
#include <netinet/in.h>
#include <sys/socket.h>

using namespace troupe;
using namespace troupe::tests;

namespace {

std::string one_node(const std::string& more = {}) {
  return "[model]\npath = \"demo\"\n[[node]]\nname = \"a\"\nthreads = 1\n" + more;
}

} // namespace

BOOST_AUTO_TEST_CASE(doctor_finds_nothing_wrong_with_the_demo) {
  const cluster here(one_node());
  const auto ran = here.run({"doctor", "FILE"});
  BOOST_TEST(ran.code == 0, ran.all());
  for (const auto* area : {"program",
                           "cores",
                           "memory",
                           "shm",
                           "cma",
                           "limits",
                           "clocks",
                           "ucx",
                           "addresses",
                           "security",
                           "cluster",
                           "ports",
                           "model"})
    BOOST_TEST(ran.mentions(area), area);
  BOOST_TEST(ran.mentions("0 failures"), ran.all());
}

BOOST_AUTO_TEST_CASE(doctor_says_what_is_wrong_and_what_to_do) {
  const auto check = [](const std::string& more, const std::string& words) {
    const cluster here(one_node(more));
    const auto ran = here.run({"doctor", "FILE"});
    BOOST_TEST(ran.code == 1, ran.all());
    BOOST_TEST(ran.mentions("fail  "), ran.all());
    BOOST_TEST(ran.mentions(" -> "), ran.all());
    BOOST_TEST(ran.mentions(words), ran.all());
  };
  check("model_path = \"/no/such/model\"\n", "/no/such/model");
  check("memory = \"1MiB\"\n", "memory");
  check("devices = [\"mlx9_9:1\"]\n", "UCX finds no device mlx9_9:1");
  check("bind = \"192.0.2.1\"\nadvertise = \"127.0.0.1\"\nport = 7000\n[security]\nsecret_file = "
        "\"none\"\n",
        "none");
}

BOOST_AUTO_TEST_CASE(B17_doctor_opens_the_tokenizer_and_compares_it_with_the_model) {
  const served_model model{compute::random_model{}};
  const cluster here("[model]\npath = \"" + model.folder().string()
                     + "\"\n[[node]]\nname = \"a\"\nthreads = 1\n");
  const auto sound = here.run({"doctor", "FILE"});
  BOOST_TEST(sound.code == 0, sound.all());
  BOOST_TEST(sound.mentions("ok    tokenizer  node a: 2048 tokens, digest "), sound.all());
  const auto tokenizer = model.folder() / "tokenizer.json";
  const auto text = read_text(tokenizer);
  const auto fails = [&](const std::string& words) {
    const auto ran = here.run({"doctor", "FILE"});
    BOOST_TEST(ran.code == 1, ran.all());
    BOOST_TEST(ran.mentions("fail  tokenizer  node a: "), ran.all());
    BOOST_TEST(ran.mentions(words), ran.all());
    BOOST_TEST(ran.mentions("model.tokenizer"), ran.all());
  };
  write_text(tokenizer, text.substr(0, text.size() / 2));
  fails("tokenizer.json");
  std::filesystem::remove(tokenizer);
  fails("tokenizer.json");
  write_text(tokenizer, text);
  const tiny_model wider{{.vocabulary = 2100}};
  std::filesystem::copy_file(wider.folder() / "config.json",
                             model.folder() / "config.json",
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::copy_file(wider.folder() / "model.safetensors",
                             model.folder() / "model.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  fails("the tokenizer has 2048 ids, but the model has 2100 rows");
}

BOOST_AUTO_TEST_CASE(doctor_names_a_taken_port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  BOOST_REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  // Bound and not listening: connecting is refused, so no cluster runs there, and it is taken.
  const auto port = std::to_string(ntohs(address.sin_port));
  const cluster here(one_node("port = " + port + "\n"));
  const auto ran = here.run({"doctor", "FILE"});
  ::close(fd);
  BOOST_TEST(ran.code == 1, ran.all());
  BOOST_TEST(ran.mentions("port = " + port), ran.all());
  BOOST_TEST(ran.mentions("Address already in use"), ran.all());
}

BOOST_AUTO_TEST_CASE(a_random_model_is_written_inspected_and_measured) {
  const cluster here(one_node());
  const auto folder = (here.folder() / "model").string();
  const auto written = here.run({"model",
                                 "random",
                                 folder,
                                 "--layers",
                                 "3",
                                 "--hidden",
                                 "96",
                                 "--heads",
                                 "6",
                                 "--kv-heads",
                                 "2",
                                 "--ffn",
                                 "160",
                                 "--vocabulary",
                                 "512",
                                 "--dtype",
                                 "f16",
                                 "-q"});
  BOOST_TEST(written.code == 0, written.all());
  const auto seen = here.run({"model", "inspect", folder});
  BOOST_TEST(seen.code == 0);
  BOOST_TEST(seen.mentions("layers 3, hidden 96, ffn 160, vocabulary 512"), seen.all());
  BOOST_TEST(seen.mentions("stored as f16"), seen.all());
  const auto bench = here.run({"bench",
                               folder,
                               "--only",
                               "model",
                               "--threads",
                               "1",
                               "--prompt",
                               "32",
                               "--steps",
                               "4",
                               "--json",
                               "-q"});
  BOOST_TEST(bench.code == 0, bench.all());
  for (const auto* words : {"\"decode, 1 thread\"", "\"prompt of 32, 1 thread\"", "fraction"})
    BOOST_TEST(bench.mentions(words), words);
  BOOST_TEST(here.run({"bench", folder, "--prompt", "4096"}).code == 2);
}

BOOST_AUTO_TEST_CASE(model_commands_name_what_is_wrong) {
  const cluster here(one_node());
  const auto folder = (here.folder() / "model").string();
  BOOST_TEST(here.run({"model", "random", folder, "--dtype", "f8"}).mentions("f32, f16 and bf16"));
  BOOST_TEST(here.run({"model", "random", folder, "--shape", "7B"}).mentions("110M, 1.1B"));
  const auto empty = here.run({"model", "inspect", here.folder().path().string()});
  BOOST_TEST(empty.code == 3);
  BOOST_TEST(empty.mentions("config.json"), empty.all());
}

BOOST_AUTO_TEST_CASE(every_command_has_help_with_examples_and_exit_codes) {
  const cluster here(one_node());
  for (const auto* name :
       {"generate", "up", "node", "plan", "config", "status", "stop", "doctor", "bench", "model"}) {
    const auto ran = here.run({name, "--help"});
    BOOST_TEST(ran.code == 0, name);
    BOOST_TEST(ran.mentions("Examples:"), name);
    BOOST_TEST(ran.mentions("Exit codes: 0"), name);
  }
  const auto version = here.run({"--version"});
  BOOST_TEST(version.code == 0);
  BOOST_TEST(version.mentions("troupe 0."), version.all());
  BOOST_TEST(version.mentions("wire "), version.all());
  BOOST_TEST(version.mentions("cuda: "), version.all());
}

BOOST_AUTO_TEST_CASE(a_wrong_command_line_is_refused_before_anything_starts) {
  const cluster here(one_node());
  for (const auto& words : {std::vector<std::string>{},
                            {"frobnicate"},
                            {"up", "/no/such/file"},
                            {"node", "FILE"},
                            {"generate", "FILE", "--max-tokens", "many"}}) {
    const auto ran = here.run(words);
    BOOST_TEST(ran.code == 2, ran.all());
    BOOST_TEST(ran.mentions("troupe: error: "), ran.all());
    BOOST_TEST(ran.mentions("--help"), ran.all());
  }
}
