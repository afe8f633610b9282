// A09: what the options of model, split, state, schedule and requests do, seen from outside. Which
// keys there are is compared with the table of settings in options_nodes_test.cpp.

#include "compute/batch.hpp"
#include "tests/support/cluster_commands.hpp"
#include "tests/support/serving_cluster.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <set>

using namespace troupe;
using namespace troupe::tests;

namespace {

cluster_shape one_process(std::size_t stages) {
  return in_one_process(short_model().folder(), stages);
}

/// `troupe config` tells the value that was set, and that it was set.
void check_told(const cluster& which, const std::string& key, const std::string& value) {
  const auto told = which.run(with({"config", "FILE"}, set({key + "=" + value})));
  BOOST_TEST(told.code == 0, told.all());
  bool found = false;
  for (const auto& line : told.lines)
    found = found
            || (line.starts_with(key + " ") && line.find(value) != std::string::npos
                && line.find("--set " + key) != std::string::npos);
  BOOST_TEST(found, key << " is not told as " << value << ":\n" << told.all());
}

std::string plan_of(const cluster& which, const std::vector<std::string>& options) {
  std::string text;
  for (const auto& line : which.run(with({"plan", "FILE", "--json"}, set(options))).lines)
    for (const auto c : line)
      if (c != ' ')
        text += c;
  return text;
}

std::string prompt(std::size_t tokens, std::size_t answer, unsigned seed = 1) {
  return token_prompt(random_tokens(tokens, 2048, seed), answer);
}

const std::string small_text = R"({"prompt": "In the", "ignore_end": true})";

} // namespace

BOOST_AUTO_TEST_CASE(A09_model_context_and_dtype) {
  const cluster one{one_process(2)};
  check_told(one, "model.context", "64");
  check_told(one, "model.dtype", "\"bf16\"");
  const serving_cluster wide{one};
  const auto wide_ranks = wide.gauges();
  const cluster narrow_one{one_process(2)};
  const serving_cluster narrow{narrow_one, set({"model.dtype=bf16", "model.context=64"})};
  const auto ranks = narrow.gauges();
  BOOST_REQUIRE(ranks.size() == 2u);
  // The layers are half as large; the embedding table is used where the file lies, as it is.
  BOOST_TEST(ranks[1].at("weight_bytes") < wide_ranks[1].at("weight_bytes") * 6 / 10);
  BOOST_TEST(ranks[1].at("weight_bytes") > wide_ranks[1].at("weight_bytes") * 4 / 10);
  BOOST_TEST(ranks[1].at("state_bytes") == wide_ranks[1].at("state_bytes") / 4);
  for (const auto& [type, part] : {std::pair{"int8", 34.0 / 128}, {"int4", 20.0 / 128}}) {
    const cluster few_bits{one_process(2)};
    const serving_cluster served{few_bits, set({std::string{"model.dtype="} + type})};
    const auto held = served.gauges().at(1).at("weight_bytes");
    // Norms are f32 whatever the weights are, and the last panel of a weight is filled up.
    BOOST_TEST(held > wide_ranks[1].at("weight_bytes") * part, type);
    BOOST_TEST(held < wide_ranks[1].at("weight_bytes") * (part + 0.1), type);
  }
  BOOST_TEST(one.try_generate({prompt(100, 4)}).code == 0);
  const auto refused = narrow_one.try_generate({prompt(100, 4)});
  BOOST_TEST(refused.code == 2);
  BOOST_TEST(refused.mentions("the context holds 64"), refused.all());
}

BOOST_AUTO_TEST_CASE(A09_model_path_and_tokenizer) {
  compute::random_model wanted;
  wanted.seed = 7;
  const served_model bare{wanted};
  const temporary_folder words;
  for (const auto* name : {"tokenizer.json", "tokenizer_config.json"})
    std::filesystem::rename(bare.folder() / name, words / name);
  const cluster one{one_process(1)};
  const auto usual = one.generate({small_text}, {"--max-tokens", "8"});
  const auto path = "model.path=" + bare.folder().string();
  const auto without = one.try_generate({small_text}, set({path}));
  BOOST_TEST(without.code == 3, without.all());
  BOOST_TEST(without.mentions("tokenizer"), without.all());
  const auto found = one.generate(
    {small_text},
    with({"--max-tokens", "8"}, set({path, "model.tokenizer=" + words.path().string()})));
  BOOST_TEST(found[0].tokens.size() == 8u);
  BOOST_TEST(found[0].digests != usual[0].digests);
}

BOOST_AUTO_TEST_CASE(A09_parallel_options_lay_out_the_work) {
  const cluster two{one_process(2)};
  BOOST_TEST(plan_of(two, {}).find(R"("stages":[[0,1],[1,4]])") == std::string::npos);
  check_told(two, "parallel.layers", "[[0, 1], [1, 4]]");
  BOOST_TEST(plan_of(two, {"parallel.layers=[[0, 1], [1, 4]]"}).find(R"("stages":[[0,1],[1,4]])")
             != std::string::npos);
  BOOST_TEST(
    plan_of(two, {"parallel.pipeline=4", "node.n0.ranks=4"}).find(R"("pipeline":4,"tensor":1)")
    != std::string::npos);
  BOOST_TEST(
    plan_of(two, {"parallel.pipeline=1", "parallel.tensor=2"}).find(R"("pipeline":1,"tensor":2)")
    != std::string::npos);
  const auto copies = two.run(with({"plan", "FILE"}, set({"parallel.data=2"})));
  BOOST_TEST(copies.code == 2);
  BOOST_TEST(copies.mentions("parallel.data"), copies.all());
  auto apart = one_process(2);
  apart.ranks_per_node = 1;
  const cluster uneven{apart};
  BOOST_TEST(plan_of(uneven, {"node.n0.weight=3"}).find(R"("stages":[[0,3],[3,4]])")
             != std::string::npos);
}

// Row G09: off by default, and the bytes say what was sent.
BOOST_AUTO_TEST_CASE(A09_G09_wire_dtype_halves_the_boundary) {
  std::map<std::string, std::uint64_t> bytes;
  for (const std::string type : {"f32", "bf16", "f16"}) {
    const cluster two{one_process(2)};
    check_told(two, "parallel.wire_dtype", "\"" + type + "\"");
    const serving_cluster served{two, set({"parallel.wire_dtype=" + type})};
    two.generate({prompt(8, 12)});
    const auto ranks = served.gauges();
    constexpr std::uint64_t steps = 12;
    bytes[type] = ranks[0].at("boundary_bytes") - steps * 96; // headers
  }
  constexpr std::uint64_t rows = 8 + 12 - 1;
  BOOST_TEST(bytes["f32"] == rows * 64 * 4);
  BOOST_TEST(bytes["bf16"] == rows * 64 * 2);
  BOOST_TEST(bytes["f16"] == rows * 64 * 2);
}

BOOST_AUTO_TEST_CASE(A09_schedule_cuts_prompts_and_fills_steps) {
  const auto steps = [](const std::vector<std::string>& options,
                        const std::vector<std::string>& prompts) {
    const cluster one{one_process(1)};
    const serving_cluster served{one, set(options)};
    one.generate(prompts);
    return served.gauges()[0].at("steps");
  };
  const auto alone = [&](const std::vector<std::string>& options) {
    return steps(options, {prompt(96, 1)});
  };
  BOOST_TEST(alone({"schedule.prefill_chunk=96"}) == 1u);
  BOOST_TEST(alone({"schedule.prefill_chunk=32"}) == 3u);
  BOOST_TEST(alone({"schedule.prefill_chunk=8"}) == 12u);
  // A step of 16 rows has no room for a second chunk of 16; one of 64 does.
  const std::vector<std::string> four{
    prompt(32, 1, 1), prompt(32, 1, 2), prompt(32, 1, 3), prompt(32, 1, 4)};
  const auto narrow = steps({"schedule.step_tokens=16", "schedule.prefill_chunk=16"}, four);
  const auto wide = steps({"schedule.step_tokens=128", "schedule.prefill_chunk=16"}, four);
  BOOST_TEST(narrow == 8u);
  BOOST_TEST(wide < narrow);
}

BOOST_AUTO_TEST_CASE(A09_micro_batches_split_the_sequences) {
  const auto steps = [](const std::string& in_flight) {
    const cluster two{one_process(2)};
    check_told(two, "schedule.micro_batches", in_flight);
    const serving_cluster served{two, set({"schedule.micro_batches=" + in_flight})};
    two.generate({prompt(4, 40, 1), prompt(4, 40, 2), prompt(4, 40, 3), prompt(4, 40, 4)});
    return served.gauges()[0].at("steps");
  };
  const auto one = steps("1");
  const auto four = steps("4");
  BOOST_TEST(one < 60u);   // four rows a step
  BOOST_TEST(four > 120u); // one row a step
}

BOOST_AUTO_TEST_CASE(A09_state_and_queue_bound_what_runs_and_waits) {
  const cluster one{one_process(1)};
  const serving_cluster served{one, set({"state.max_sequences=1", "schedule.queue=1"})};
  BOOST_TEST(number_in(served.status(), "pages_total") == 256 / compute::kv_page_tokens);
  const auto crowd =
    one.try_generate({prompt(4, 200, 1), prompt(4, 200, 2), prompt(4, 200, 3), prompt(4, 200, 4)});
  BOOST_TEST(crowd.code == 4, crowd.all());
  std::size_t answered = 0;
  for (const auto& answer : read_answers(crowd.lines)) {
    answered += answer.finish == "length" ? 1 : 0;
    if (answer.finish == "error")
      BOOST_TEST(answer.what.find("schedule.queue") != std::string::npos, answer.what);
  }
  BOOST_TEST(answered == 2u); // one ran, one waited
  BOOST_TEST(one.try_generate({prompt(4, 4)}).code == 0);

  const cluster other{one_process(1)};
  check_told(other, "state.max_sequences", "3");
  const auto plan = plan_of(other, {"state.max_sequences=3"});
  BOOST_TEST(number_in(plan, "pages") == 3 * 256 / compute::kv_page_tokens);
  const auto page = number_in(plan, "state_page_bytes");
  const auto memory = "state.memory=" + std::to_string(20 * page);
  const serving_cluster capped{other, set({memory})};
  BOOST_TEST(number_in(capped.status(), "pages_total") == 20u);
  const auto little = other.run(with({"plan", "FILE"}, set({"state.memory=1kB"})));
  BOOST_TEST(little.code == 4);
  BOOST_TEST(little.mentions("state.memory"), little.all());
}

BOOST_AUTO_TEST_CASE(A09_state_dtype_halves_the_state) {
  const cluster two{one_process(2)};
  const auto exact = two.generate({prompt(8, 12)}).front();
  const auto bytes = number_in(plan_of(two, {}), "state_page_bytes");
  const auto rows = 64 * 4 * compute::kv_page_tokens; // of a page that the stage keeps for replays
  for (const std::string type : {"f16", "bf16"}) {
    check_told(two, "state.dtype", "\"" + type + "\"");
    const auto plan = plan_of(two, {"state.dtype=" + type});
    BOOST_TEST((number_in(plan, "state_page_bytes") - rows) * 2 == bytes - rows);
    const auto rounded = two.generate({prompt(8, 12)}, set({"state.dtype=" + type})).front();
    BOOST_TEST(rounded.digests != exact.digests);
    BOOST_TEST(std::abs(rounded.logprobs.at(0) - exact.logprobs.at(0)) < 0.05);
  }
}

BOOST_AUTO_TEST_CASE(A09_limits_bound_a_request) {
  const cluster one{one_process(1)};
  const serving_cluster served{
    one, set({"limits.max_prompt_tokens=4", "limits.max_new_tokens=5", "generate.max_tokens=5"})};
  BOOST_TEST(one.try_generate({prompt(4, 5)}).code == 0);
  const auto longer = one.try_generate({prompt(5, 5), prompt(4, 5)});
  BOOST_TEST(longer.code == 2);
  BOOST_TEST(longer.mentions("limits.max_prompt_tokens"), longer.all());
  BOOST_TEST(read_answers(longer.lines).at(1).finish == "length");
  const auto more = one.try_generate({prompt(4, 6)});
  BOOST_TEST(more.code == 2);
  BOOST_TEST(more.mentions("limits.max_new_tokens"), more.all());
}

BOOST_AUTO_TEST_CASE(A09_generate_is_what_a_request_does_not_say) {
  const cluster one{one_process(1)};
  const serving_cluster served{one};
  const auto tokens = [&](std::vector<std::string> options) {
    options.push_back("generate.max_tokens=12");
    return one.generate({small_text}, set(options)).front().tokens;
  };
  const auto greedy = tokens({});
  BOOST_TEST(greedy.size() == 12u);
  BOOST_TEST(one.generate({small_text}, set({"generate.max_tokens=3"})).front().tokens.size()
             == 3u);
  const std::vector<std::string> warm{"generate.temperature=1.5", "generate.seed=3"};
  BOOST_TEST(tokens(warm) != greedy);
  BOOST_TEST(tokens(warm) == tokens(warm), boost::test_tools::per_element());
  BOOST_TEST(tokens({"generate.temperature=1.5", "generate.seed=4"}) != tokens(warm));
  for (const auto* sharp : {"generate.top_k=1", "generate.top_p=0.0001", "generate.min_p=1.0"})
    BOOST_TEST(tokens(with(warm, {sharp})) == greedy, sharp);
  // A word that was said stays away where it costs a hundredfold.
  const auto repeated = tokens({"generate.repetition_penalty=100.0"});
  BOOST_TEST(std::set<token_id>(repeated.begin(), repeated.end()).size() == repeated.size());
  const auto free = tokens({"generate.repetition_penalty=0.01"}); // and comes where it is wished
  BOOST_TEST(std::set<token_id>(free.begin(), free.end()).size() < free.size());
}

BOOST_AUTO_TEST_CASE(A09_options_of_model_random_and_bench) {
  const cluster here{one_process(1)};
  int count = 0;
  const auto seen = [&](const std::vector<std::string>& options) {
    const auto folder = (here.folder() / ("model" + std::to_string(count++))).string();
    const auto made =
      here.run(with({"model", "random", folder, "--vocabulary", "300", "-q"}, options));
    BOOST_TEST(made.code == 0, made.all());
    auto text = here.run({"model", "inspect", folder}).all();
    for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder))
      text.erase(at, folder.size());
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator{folder})
      files += entry.path().extension() == ".safetensors" ? 1 : 0;
    return text + "files " + std::to_string(files);
  };
  const auto usual = seen({});
  const auto check = [&](const std::vector<std::string>& options, const std::string& words) {
    const auto text = seen(options);
    BOOST_TEST(text.find(words) != std::string::npos, text);
    BOOST_TEST(text != usual, options.front());
  };
  check({"--family", "qwen3"}, "qwen3");
  check({"--layers", "5"}, "layers 5");
  check({"--hidden", "96"}, "hidden 96");
  check({"--heads", "8"}, "heads 8 of");
  check({"--kv-heads", "4"}, "key/value heads 4");
  check({"--head-dim", "24"}, "heads 4 of 24");
  check({"--ffn", "200"}, "ffn 200");
  check({"--context", "512"}, "context 512");
  check({"--tied"}, "tied to embedding: yes");
  check({"--dtype", "f32"}, "stored as f32");
  check({"--files", "2"}, "files 2");
  BOOST_TEST(seen({"--threads", "1"}) == usual); // the same bytes, only slower
  const auto weights = [&](const std::string& seed) {
    const auto folder = here.folder() / ("seed" + seed);
    here.run({"model", "random", folder.string(), "--vocabulary", "300", "--seed", seed, "-q"});
    std::ifstream in(folder / "model.safetensors", std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  BOOST_TEST((weights("1") != weights("2")));

  const auto folder = short_model().folder().string();
  const auto bench = [&](const std::string& type, const std::string& prompt_tokens) {
    const auto ran = here.run({"bench",
                               folder,
                               "--only",
                               "model",
                               "--dtype",
                               type,
                               "--threads",
                               "1",
                               "--prompt",
                               prompt_tokens,
                               "--steps",
                               "3",
                               "--json",
                               "-q"});
    BOOST_TEST(ran.code == 0, ran.all());
    BOOST_TEST(ran.mentions("\"what\": \"prompt of " + prompt_tokens + ", 1 thread\""), ran.all());
    BOOST_TEST(ran.mentions("\"held\": \"" + type + "\""), ran.all());
    return ran.all();
  };
  const auto decode_bytes = [](const std::string& report) {
    const std::string key = "\"bytes\": ";
    const auto row = report.find("\"what\": \"decode, 1 thread\"");
    const auto at = report.find(key, row);
    BOOST_REQUIRE((row != std::string::npos && at != std::string::npos));
    return std::stod(report.substr(at + key.size()));
  };
  const auto narrow = decode_bytes(bench("bf16", "16"));
  BOOST_TEST(decode_bytes(bench("f32", "24")) > narrow * 1.8);
  BOOST_TEST(decode_bytes(bench("int8", "16")) < narrow * 0.7);
  BOOST_TEST(here.run({"bench", folder, "--dtype", "f8", "-q"}).code == 2);
}
