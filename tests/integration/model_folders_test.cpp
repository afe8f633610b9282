// Model folders that are damaged, incomplete or unusual, through the whole program: `plan`,
// `generate` and `node` name the file and the tensor and end with exit code 3; what should load
// gives the bits of the plain folder.

#include "tests/support/cluster_commands.hpp"
#include "tests/support/tiny_model.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <filesystem>

using namespace troupe;
using namespace troupe::tests;

namespace {

namespace fs = std::filesystem;

const std::string index_name = "model.safetensors.index.json";

std::string part(int index) {
  return "model-0000" + std::to_string(index) + "-of-00003.safetensors";
}

compute::random_model small(std::size_t files = 1) {
  compute::random_model wanted;
  wanted.layers = 3;
  wanted.ffn = 2048; // a layer as large as embedding and head together: three even parts
  wanted.files = files;
  return wanted;
}

const std::string prompt = token_prompt({7, 1000, 33, 2047, 4}, 10);

told_answer answer_of(const fs::path& model, std::size_t pipeline = 1, std::size_t tensor = 1) {
  return cluster{in_one_process(model, pipeline, tensor)}.generate({prompt}).front();
}

void check_same_bits(const told_answer& found, const told_answer& expected) {
  BOOST_TEST(found.tokens == expected.tokens, boost::test_tools::per_element());
  BOOST_TEST(found.digests == expected.digests, boost::test_tools::per_element());
}

void check_close(const told_answer& found, const told_answer& expected) {
  BOOST_TEST(found.tokens == expected.tokens, boost::test_tools::per_element());
  BOOST_REQUIRE(found.logprobs.size() == expected.logprobs.size());
  for (std::size_t i = 0; i < found.logprobs.size(); ++i)
    BOOST_TEST(std::abs(found.logprobs[i] - expected.logprobs[i]) < 1e-4);
}

void check_refused(const fs::path& model, const std::vector<std::string>& parts) {
  const cluster which{in_one_process(model, 1)};
  for (const auto& command : {std::vector<std::string>{"plan", "FILE"},
                              {"generate", "FILE", "--prompt", "In"},
                              {"node", "FILE", "--name", "n0"},
                              {"model", "inspect", model.string()}}) {
    const auto ran = which.run(command, 20);
    BOOST_TEST(ran.code == 3, command[0] << " gave " << ran.code << ": " << ran.all());
    for (const auto& words : parts)
      BOOST_TEST(ran.mentions(words), command[0] << " does not say " << words << ": " << ran.all());
  }
}

/// Replaces every occurrence of `from` in a file; ends the test when there is none.
void edit(const fs::path& file, const std::string& from, const std::string& to) {
  auto text = read_text(file);
  auto at = text.find(from);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos, file << " has no " << from);
  for (; at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  write_text(file, text);
}

} // namespace

BOOST_AUTO_TEST_CASE(B01_a_pointer_in_place_of_a_part_is_named) {
  const served_model model{small(3)};
  write_text(model.folder() / part(2),
             "version https://git-lfs.github.com/spec/v1\n"
             "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
             "size 12345\n");
  check_refused(model.folder(), {part(2), "pointer"});
}

BOOST_AUTO_TEST_CASE(B03_folders_with_and_without_an_index_and_with_a_wrong_one) {
  const served_model whole{small()};
  const auto expected = answer_of(whole.folder());
  const served_model parts{small(3)};
  check_same_bits(answer_of(parts.folder(), 3), expected);
  {
    const served_model one{small()};
    auto index = read_text(parts.folder() / index_name);
    for (int i = 1; i <= 3; ++i)
      for (auto at = index.find(part(i)); at != std::string::npos; at = index.find(part(i)))
        index.replace(at, part(i).size(), "model.safetensors");
    write_text(one.folder() / index_name, index);
    check_same_bits(answer_of(one.folder()), expected);
  }
  const auto index = parts.folder() / index_name;
  const auto sound = read_text(index);
  const std::string norm = "model.norm.weight";
  edit(index, norm, "model.norm.bias");
  check_refused(parts.folder(), {"model.norm"});
  write_text(index, sound);
  edit(index, part(3), "model-00009-of-00003.safetensors");
  check_refused(parts.folder(), {"model-00009-of-00003.safetensors"});
  write_text(index, sound);
  fs::copy_file(parts.folder() / part(1), parts.folder() / "copy.safetensors");
  edit(index, part(3), "copy.safetensors");
  check_refused(parts.folder(), {"copy.safetensors"});
}

BOOST_AUTO_TEST_CASE(B05_a_head_that_is_missing_is_refused_and_never_random) {
  auto wanted = small();
  wanted.tied_head = true;
  const served_model model{wanted};
  const auto config = model.folder() / "config.json";
  edit(config, "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
  check_refused(model.folder(), {"lm_head.weight"});
  edit(config,
       "\"tie_word_embeddings\": false",
       "\"text_config\": {\"tie_word_embeddings\": true}, \"tie_word_embeddings\": false");
  check_refused(model.folder(), {"tie_word_embeddings"});
}

BOOST_AUTO_TEST_CASE(B07_a_tied_head_is_on_the_last_stage_too) {
  auto wanted = small();
  wanted.tied_head = true;
  const served_model model{wanted};
  const auto expected = answer_of(model.folder());
  for (const std::size_t stages : {2u, 3u})
    check_same_bits(answer_of(model.folder(), stages), expected);
}

BOOST_AUTO_TEST_CASE(B09_what_the_program_exports_it_reads_back) {
  const served_model model{small()};
  const temporary_folder out;
  const cluster which{in_one_process(model.folder(), 1)};
  const auto write = [&](const std::string& name) {
    const auto folder = (out / name).string();
    const auto ran = which.run({"model",
                                "random",
                                folder,
                                "--layers",
                                "3",
                                "--hidden",
                                "78",
                                "--heads",
                                "6",
                                "--kv-heads",
                                "2",
                                "--head-dim",
                                "20",
                                "--vocabulary",
                                "2048",
                                "-q"});
    BOOST_REQUIRE_MESSAGE(ran.code == 0, ran.all());
    for (const auto* file : {"tokenizer.json", "tokenizer_config.json"})
      fs::copy_file(model.folder() / file, out / (name + "/" + file));
    return fs::path{folder};
  };
  const auto first = write("first");
  const auto seen = which.run({"model", "inspect", first.string()});
  BOOST_TEST(seen.mentions("heads 6 of 20, key/value heads 2"), seen.all());
  check_same_bits(answer_of(first), answer_of(write("second")));
}

BOOST_AUTO_TEST_CASE(B11_rope_in_old_and_new_spelling_gives_the_same_bits) {
  const served_model model{small()};
  const auto config = model.folder() / "config.json";
  edit(config, "\"rope_theta\": 10000.0", "\"rope_theta\": 500000.0");
  const auto old_spelling = answer_of(model.folder());
  edit(config,
       "\"rope_theta\": 500000.0",
       R"("rope_parameters": {"rope_type": "default", "rope_theta": 500000.0})");
  check_same_bits(answer_of(model.folder()), old_spelling);
  edit(config,
       R"("rope_parameters": {"rope_type": "default", "rope_theta": 500000.0})",
       "\"rope_theta\": 10000.0");
  BOOST_TEST(answer_of(model.folder()).digests != old_spelling.digests);
  edit(config,
       "\"rope_theta\": 10000.0",
       R"("rope_parameters": {"rope_type": "spiral", "rope_theta": 500000.0})");
  const cluster which{in_one_process(model.folder(), 1)};
  const auto ran = which.run({"plan", "FILE"});
  BOOST_TEST(ran.code != 0);
  BOOST_TEST(ran.mentions("spiral"), ran.all());
}

BOOST_AUTO_TEST_CASE(B19_biases_are_cut_with_their_matrices) {
  for (const std::string family : {"qwen2", "llama"}) {
    auto wanted = small();
    wanted.family = family;
    wanted.biases = family == "llama"; // qwen2 has them always
    const served_model model{wanted};
    const auto expected = answer_of(model.folder());
    for (const std::size_t tensor : {2u, 3u, 4u})
      check_close(answer_of(model.folder(), 1, tensor), expected);
  }
}

BOOST_AUTO_TEST_CASE(B23_all_parts_are_read_and_counted) {
  const served_model whole{small()};
  const served_model parts{small(3)};
  fs::remove(parts.folder() / index_name);
  check_same_bits(answer_of(parts.folder(), 2), answer_of(whole.folder()));
  fs::rename(parts.folder() / part(2), parts.folder() / "part2");
  check_refused(parts.folder(), {"1 of 3 parts are missing", part(2)});
}

BOOST_AUTO_TEST_CASE(B25_a_web_page_is_no_model) {
  const served_model model{small()};
  write_text(model.folder() / "model.safetensors",
             "<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head></html>\n");
  check_refused(model.folder(), {"model.safetensors", "<!DOCTYPE html>"});
  write_text(model.folder() / "config.json", "<!DOCTYPE html>\n<html></html>\n");
  check_refused(model.folder(), {"config.json"});
  const served_model words{small()};
  write_text(words.folder() / "tokenizer.json", "<!DOCTYPE html>\n<html></html>\n");
  const cluster which{in_one_process(words.folder(), 1)};
  for (const auto& command : {std::vector<std::string>{"generate", "FILE", "--prompt", "In"},
                              {"node", "FILE", "--name", "n0"}}) {
    const auto ran = which.run(command, 20);
    BOOST_TEST(ran.code == 3, ran.all());
    BOOST_TEST(ran.mentions("tokenizer.json"), ran.all());
  }
}

// Every length of a damaged file, and damaged bytes of a header: refused, never a crash.
BOOST_AUTO_TEST_CASE(B01_B25_cut_and_damaged_files_never_end_the_program_by_a_signal) {
  const served_model model{small()};
  const auto file = model.folder() / "model.safetensors";
  const auto sound = read_text(file);
  const cluster which{in_one_process(model.folder(), 1)};
  for (const std::size_t length : {std::size_t{0},
                                   std::size_t{7},
                                   std::size_t{8},
                                   std::size_t{100},
                                   sound.size() / 2,
                                   sound.size() - 1}) {
    write_text(file, sound.substr(0, length));
    const auto ran = which.run({"generate", "FILE", "--prompt", "In"}, 20);
    BOOST_TEST(ran.code == 3, length << ": " << ran.all());
    BOOST_TEST(ran.mentions("model.safetensors"), ran.all());
  }
  for (unsigned seed = 0; seed < 12; ++seed) {
    auto damaged = sound;
    for (unsigned i = 0; i < 3; ++i)
      damaged[(seed * 977 + i * 131) % 1500] = static_cast<char>(seed * 37 + i);
    write_text(file, damaged);
    const auto ran = which.run({"plan", "FILE"}, 20);
    BOOST_TEST((ran.code == 3 || ran.code == 0 || ran.code == 1), seed << ": " << ran.all());
  }
}

BOOST_AUTO_TEST_CASE(B27_a_long_context_is_planned_and_refused_before_memory_is_taken) {
  auto wanted = small();
  wanted.context = 131072;
  wanted.hidden = 256;
  wanted.heads = 8;
  wanted.kv_heads = 8;
  wanted.head_dim = 128;
  const served_model model{wanted};
  const cluster which{in_one_process(model.folder(), 1)};
  // 512 MiB of address space hold the program and the weights, not 3 GiB of state for a sequence.
  const auto limited = [&](const std::string& more) {
    auto child = test::process::run({"/bin/sh",
                                     "-c",
                                     "ulimit -v 524288; exec \"$0\" " + more,
                                     troupe_program().string(),
                                     which.file().string()},
                                    {"XDG_RUNTIME_DIR=" + which.folder().path().string()},
                                    true);
    child.finish_input();
    outcome found;
    found.lines = child.hear_all(std::chrono::seconds{30});
    if (const auto ended = child.wait(std::chrono::seconds{5}); ended && ended->exited)
      found.code = ended->code;
    return found;
  };
  const auto plan = limited("plan \"$1\" --set node.n0.memory=512MiB");
  BOOST_TEST(plan.code == 4, plan.all());
  BOOST_TEST(plan.mentions("131072 tokens"), plan.all());
  BOOST_TEST(plan.mentions("model.context"), plan.all()); // what would work
  const auto run = limited("node \"$1\" --name n0");
  BOOST_TEST(run.code == 4, run.all()); // the limit is seen before it is met
  BOOST_TEST(run.mentions("131072 tokens"), run.all());
  const auto capped =
    which.try_generate({prompt}, {"--set", "node.n0.memory=512MiB", "--set", "model.context=1024"});
  BOOST_TEST(capped.code == 0, capped.all());
}

BOOST_AUTO_TEST_CASE(B29_a_node_needs_only_the_files_of_its_part) {
  const served_model head{small(3)};
  const served_model tail{small(3)};
  const auto expected = answer_of(head.folder());
  auto shape = in_one_process(head.folder(), 2);
  shape.ranks_per_node = 1;
  const cluster two{shape};
  // What the last stage needs is in the last parts; what it does not need may be gone.
  fs::remove(tail.folder() / part(1));
  const std::vector<std::string> apart{"--set", "node.n1.model_path=" + tail.folder().string()};
  check_same_bits(two.generate({prompt}, apart).front(), expected);
  fs::remove(tail.folder() / part(3));
  const auto lacking = two.try_generate({prompt}, apart);
  BOOST_TEST(lacking.code == 3, lacking.all());
  BOOST_TEST(lacking.mentions(part(3)), lacking.all());
  // Before anything starts, too: both nodes are of this host.
  const auto planned = two.run({"plan", "FILE", apart[0], apart[1]});
  BOOST_TEST(planned.code == 3, planned.all());
  for (const auto* words : {"node 'n1', rank 1", "tensor '", "'model-00003-of-00003.safetensors'"})
    BOOST_TEST(planned.mentions(words), planned.all());
  const auto examined = two.run({"doctor", "FILE", apart[0], apart[1]});
  BOOST_TEST(examined.code == 1, examined.all());
  BOOST_TEST(examined.mentions("fail  model      node 'n1', rank 1"), examined.all());
}
