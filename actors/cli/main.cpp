// The program `troupe`: reads the command line and calls one sub-command. The only file that knows
// the command line's library.

#include "actors/cli/bench.hpp"
#include "actors/cli/command.hpp"
#include "actors/cli/config.hpp"
#include "actors/cli/doctor.hpp"
#include "actors/cli/generate.hpp"
#include "actors/cli/inject.hpp"
#include "actors/cli/join.hpp"
#include "actors/cli/model.hpp"
#include "actors/cli/node.hpp"
#include "actors/cli/plan.hpp"
#include "actors/cli/status.hpp"
#include "actors/cli/trace.hpp"
#include "actors/cli/up.hpp"
#include "actors/cli/version.hpp"
#include "transport/ucx/ucx_transport.hpp"

#include <CLI/CLI.hpp>

#include <functional>

namespace troupe::cli {

namespace {

constexpr const char* exit_codes =
  "\nExit codes: 0 all well; 1 other failures, findings of doctor, and what bench --compare found\n"
  "slower; 2 command line or cluster file wrong; 3 a file or model is missing, damaged or\n"
  "unreadable; 4 not enough memory, or a queue is full; 5 somebody cannot be reached, or a\n"
  "deadline passed; 6 somebody does not belong to this cluster, or holds another model, file or\n"
  "version; 130 interrupted.\n"
  "Data goes to standard output, everything else to standard error.";

// Runs after parsing; the sub-command that was named sets it.
using action = std::function<int()>;

CLI::App* add_command(CLI::App& app,
                      const std::string& name,
                      const std::string& what,
                      const std::string& examples) {
  auto* command = app.add_subcommand(name, what);
  command->footer("\nExamples:\n" + examples + exit_codes);
  return command;
}

void add_cluster(CLI::App* command, cluster_options& into) {
  command->add_option("FILE", into.file, "Cluster file; without one, the demo")
    ->check(CLI::ExistingFile);
  command
    ->add_option("--set",
                 into.overrides,
                 "Change one setting: KEY=VALUE, as in model.context=4096; may be repeated")
    ->take_all()
    ->allow_extra_args(false);
}

void add_up(CLI::App& app, action& chosen) {
  auto options = std::make_shared<up_options>();
  auto* command = add_command(app,
                              "up",
                              "Start the nodes that belong on this host; Ctrl-C stops them",
                              "  troupe up                 the demo\n"
                              "  troupe up cluster.toml    the same on every host of the cluster\n"
                              "  troupe up cluster.toml --log --set cluster.log=debug\n");
  add_cluster(command, options->cluster);
  command->add_flag("--log", options->show_logs, "Show the logs of the nodes");
  command->add_flag("-q,--quiet", options->quiet, "No progress");
  command->callback([=, &chosen] { chosen = [=] { return run_up_command(*options); }; });
}

void add_serve(CLI::App& app, action& chosen) {
  auto options = std::make_shared<up_options>();
  auto* command = add_command(app,
                              "serve",
                              "As up, with an OpenAI-compatible HTTP endpoint; Ctrl-C stops it",
                              "  troupe serve                 the demo, at http://127.0.0.1:8080\n"
                              "  troupe serve cluster.toml --set serve.port=9000\n"
                              "  curl http://127.0.0.1:8080/v1/completions -H 'Content-Type: "
                              "application/json' \\\n"
                              "    -d '{\"prompt\": \"In the beginning\", \"max_tokens\": 20}'\n");
  add_cluster(command, options->cluster);
  command->add_flag("--log", options->show_logs, "Show the logs of the nodes");
  command->add_flag("-q,--quiet", options->quiet, "No progress");
  command->callback([=, &chosen] { chosen = [=] { return run_serve_command(*options); }; });
}

void add_node(CLI::App& app, action& chosen) {
  auto options = std::make_shared<node_command_options>();
  auto* command = add_command(app,
                              "node",
                              "Run one node in the foreground: for ssh, systemd, Slurm",
                              "  troupe node cluster.toml --name a\n"
                              "  ssh host2 troupe node cluster.toml --name b\n");
  add_cluster(command, options->cluster);
  command->add_option("--name", options->name, "Which [[node]] of the cluster file")->required();
  command->add_option("--run-folder",
                      options->run_folder,
                      "Where nodes of one host find the head; chosen by the file's path if absent");
  command->callback([=, &chosen] { chosen = [=] { return run_node_command(*options); }; });
}

void add_sampling(CLI::App* command, generate_options& into) {
  command->add_option("--max-tokens", into.max_tokens, "Tokens of an answer at most");
  command->add_option("--temperature", into.temperature, "0: always the most probable token");
  command->add_option("--top-k", into.top_k, "Choose among the k most probable; 0: off");
  command->add_option("--top-p", into.top_p, "Choose among the fewest that hold this mass; 1: off");
  command->add_option("--min-p",
                      into.min_p,
                      "Drop what has less than this part of the best one's probability; 0: off");
  command->add_option("--repetition-penalty", into.repetition_penalty, "Above 1: say it once");
  command->add_option("--frequency-penalty", into.frequency_penalty, "Per occurrence; 0: off");
  command->add_option("--presence-penalty", into.presence_penalty, "Once seen; 0: off");
  command
    ->add_option("--logit-bias",
                 into.logit_bias,
                 "ID=BIAS: favours a token, or with -100 bans it; may be repeated")
    ->take_all()
    ->allow_extra_args(false);
  command->add_option("--seed", into.seed, "The same seed gives the same text");
  command->add_option("--stop", into.stop, "Text that ends an answer; may be repeated")
    ->take_all()
    ->allow_extra_args(false);
  command->add_option(
    "--schema", into.schema, "A file with a JSON schema that answers follow (docs/json-schema.md)");
  command->add_flag("--ignore-end", into.ignore_end, "Go on after the model's end token");
}

void add_generate(CLI::App& app, action& chosen) {
  auto options = std::make_shared<generate_options>();
  auto* command =
    add_command(app,
                "generate",
                "Continue prompts: on the running cluster, or on one started for this command",
                "  troupe generate --prompt \"In the beginning\"      the demo, on four ranks\n"
                "  troupe generate cluster.toml --prompt \"Once\" --temperature 0.8 --seed 7\n"
                "  echo \"Once upon a time\" | troupe generate cluster.toml --max-tokens 64\n"
                "  troupe generate cluster.toml --prompts-file many.txt --json > answers.jsonl\n");
  add_cluster(command, options->cluster);
  auto* prompt =
    command->add_option("-p,--prompt", options->prompt, "The prompt; else standard input");
  command
    ->add_option("--prompts-file",
                 options->prompts_file,
                 "Many at once: a prompt or a JSON object a line; - is standard input")
    ->excludes(prompt);
  add_sampling(command, *options);
  auto* json = command->add_flag("--json", options->json, "One JSON object a prompt");
  command->add_flag("--digests", options->digests, "With --json: a digest of each token's logits")
    ->needs(json);
  command
    ->add_option("--logprobs",
                 options->logprobs,
                 "With --json: the N most probable tokens in the place of each; 0 ... 20")
    ->needs(json);
  command->add_flag("--echo", options->echo, "Print each prompt before its continuation");
  command->add_flag("--log", options->show_logs, "Show the logs of nodes started for this");
  command->add_flag("-q,--quiet", options->quiet, "Nothing but the text");
  command->callback([=, &chosen] { chosen = [=] { return run_generate_command(*options); }; });
}

void add_status(CLI::App& app, action& chosen) {
  auto options = std::make_shared<status_options>();
  auto* command = add_command(app,
                              "status",
                              "Show a running cluster: nodes, ranks, phases, work, traffic",
                              "  troupe status cluster.toml --watch\n"
                              "  troupe status cluster.toml --json | jq .phase\n");
  add_cluster(command, options->cluster);
  command->add_flag("--json", options->json, "One JSON object");
  command->add_flag("--watch", options->watch, "Again every second, until Ctrl-C");
  command->callback([=, &chosen] { chosen = [=] { return run_status_command(*options); }; });
}

void add_stop(CLI::App& app, action& chosen) {
  auto options = std::make_shared<cluster_options>();
  auto* command = add_command(app,
                              "stop",
                              "End a running cluster in good order, from any host that reaches it",
                              "  troupe stop cluster.toml\n");
  add_cluster(command, *options);
  command->callback([=, &chosen] { chosen = [=] { return run_stop_command(*options); }; });
}

void add_join(CLI::App& app, action& chosen) {
  auto options = std::make_shared<join_options>();
  auto* command = add_command(
    app,
    "join",
    "Add a node that is not in the cluster file to a running cluster, until it ends or is drained",
    "  troupe join 192.168.1.10:7600 --name guest --model /models/llama \\\n"
    "    --set node.guest.bind=192.168.1.77 --set security.secret_file=/etc/troupe/secret\n");
  command->add_option("HEAD", options->head, "Address and control port of the head")->required();
  command->add_option("--name", options->name, "Of the new node, unique in the cluster")
    ->required();
  command->add_option("--model", options->model, "Where this host has the model")->required();
  command
    ->add_option("--set",
                 options->overrides,
                 "A setting of this host: node.NAME.threads=4, security.secret_file=FILE; may be "
                 "repeated")
    ->take_all()
    ->allow_extra_args(false);
  command->callback([=, &chosen] { chosen = [=] { return run_join_command(*options); }; });
}

void add_drain(CLI::App& app, action& chosen) {
  auto options = std::make_shared<cluster_options>();
  auto node = std::make_shared<std::string>();
  auto* command =
    add_command(app,
                "drain",
                "Let a running cluster go on without a node, which then ends",
                "  troupe drain cluster.toml --node n3    its layers go to the others\n");
  add_cluster(command, *options);
  command->add_option("--node", *node, "Its name in the cluster file")->required();
  command->callback([=, &chosen] { chosen = [=] { return run_drain_command(*options, *node); }; });
}

void add_inject(CLI::App& app, action& chosen) {
  auto options = std::make_shared<inject_options>();
  auto* command = add_command(
    app,
    "inject",
    "Let something go wrong in a running cluster, on purpose: one [[fault]]",
    "  troupe inject cluster.toml --what kill --where \"rank 1\" --when \"step 20\"\n"
    "  troupe inject cluster.toml --what drop --where \"rank 0 -> rank 1\" --when \"message 7\"\n");
  add_cluster(command, options->cluster);
  auto& wanted = options->wanted;
  command->add_option("--what", wanted.what, "What goes wrong; docs/configuration.md has the list")
    ->required();
  command->add_option("--where", wanted.where, "Where: a rank, a node, the conductor, a link, any")
    ->capture_default_str();
  command->add_option("--when", wanted.when, "When, counted from now")->capture_default_str();
  command->add_option("--times", wanted.times, "How often")->capture_default_str();
  command->add_option("--steps", wanted.steps, "How many steps long; 0: for good")
    ->capture_default_str();
  command->add_option("--ms", wanted.ms, "How late a delayed frame leaves")->capture_default_str();
  command->add_option("--factor", wanted.factor, "How many times as slow")->capture_default_str();
  command->add_option("--length", wanted.length, "Of a collective of n")->capture_default_str();
  command->add_option("--seed", wanted.seed, "Chooses what `any` leaves open")
    ->capture_default_str();
  command->callback([=, &chosen] { chosen = [=] { return run_inject_command(*options); }; });
}

void add_trace(CLI::App& app, action& chosen) {
  auto options = std::make_shared<trace_options>();
  auto* command = add_command(
    app,
    "trace",
    "Write what every rank does in the next steps, for https://ui.perfetto.dev",
    "  troupe trace --steps 50                          the demo, started for this command\n"
    "  troupe trace cluster.toml --steps 200 --out cluster.json\n"
    "  troupe trace cluster.toml --requests 8           with work of its own beside others'\n");
  add_cluster(command, options->cluster);
  command->add_option("--steps", options->steps, "So many steps of every rank")
    ->check(CLI::Range(1, 5000))
    ->capture_default_str();
  command->add_option("-o,--out", options->out, "Into this file; - for standard output")
    ->capture_default_str();
  command->add_option(
    "--requests",
    options->requests,
    "Ask for so many answers meanwhile; an idle cluster is asked for two a stage otherwise");
  command->add_option("--wait", options->wait_s, "Seconds to wait for so many steps")
    ->check(CLI::Range(1, 3600))
    ->capture_default_str();
  command->add_flag("-q,--quiet", options->quiet, "Only errors");
  command->callback([=, &chosen] { chosen = [=] { return run_trace_command(*options); }; });
}

void add_plan(CLI::App& app, action& chosen) {
  auto options = std::make_shared<plan_options>();
  auto* command =
    add_command(app,
                "plan",
                "Show which rank would hold what, and how fast that would be, before anything is "
                "loaded",
                "  troupe plan                                the demo\n"
                "  troupe plan cluster.toml --calibrate       measure this host, and forecast\n"
                "  troupe plan --simulate config/scenarios/llama_70b.toml\n"
                "  troupe plan cluster.toml --svg plan.svg    and as a picture\n"
                "  troupe plan cluster.toml --json --set parallel.tensor=2 | jq .nodes\n");
  add_cluster(command, options->cluster);
  command->add_flag("--json", options->json, "One JSON object");
  command->add_option("--svg", options->svg, "Draw a picture into this file");
  command->add_flag("--calibrate",
                    options->calibrate,
                    "Measure this host (two seconds) and keep the figures for forecasts");
  auto* simulate =
    command->add_option("--simulate", options->scenario, "Run a described cluster in virtual time");
  simulate->excludes(command->get_option("FILE"))->excludes(command->get_option("--svg"));
  simulate->excludes(command->get_option("--set"));
  command->callback([=, &chosen] { chosen = [=] { return run_plan_command(*options); }; });
}

void add_config(CLI::App& app, action& chosen) {
  auto options = std::make_shared<config_options>();
  auto* command = add_command(app,
                              "config",
                              "Show the effective settings, where each came from and why",
                              "  troupe config cluster.toml\n"
                              "  troupe config cluster.toml --set model.context=4096 --json\n");
  add_cluster(command, options->cluster);
  command->add_flag("--json", options->json, "One JSON array");
  command->callback([=, &chosen] { chosen = [=] { return run_config_command(*options); }; });
}

void add_doctor(CLI::App& app, action& chosen) {
  auto options = std::make_shared<cluster_options>();
  auto* command = add_command(app,
                              "doctor",
                              "Check this host for a cluster: a line each, and what to do",
                              "  troupe doctor cluster.toml    on every host of the cluster\n");
  add_cluster(command, *options);
  command->callback([=, &chosen] { chosen = [=] { return run_doctor_command(*options); }; });
}

void add_bench_reports(CLI::App* command, bench_options& into) {
  auto* show =
    command->add_option("--show", into.show, "A report from before, instead of measuring")
      ->check(CLI::ExistingFile);
  command
    ->add_option("--compare",
                 into.compare,
                 "Two reports: what moved beyond noise; exit code 1 where something got slower")
    ->expected(2)
    ->check(CLI::ExistingFile)
    ->excludes(show);
  command->add_flag("--json", into.json, "One JSON object");
  command->add_option("-o,--output", into.output, "Write the report into this file, as JSON");
  command->add_option("--svg", into.svg, "Draw roofline.svg and scaling.svg into this folder");
}

void add_bench(CLI::App& app, action& chosen) {
  auto options = std::make_shared<bench_options>();
  auto* command =
    add_command(app,
                "bench",
                "Measure this machine, and what is made of it: each row with its limit",
                "  troupe bench                  machine and roads, some seconds\n"
                "  troupe bench --shape 110M     random weights of that shape\n"
                "  troupe bench DIR --dtype bf16 --threads 2 --json\n"
                "  troupe bench --all --shape 1.1B -o now.json --svg charts\n"
                "  troupe bench --compare before.json now.json\n");
  auto* folder =
    command->add_option("DIR", options->folder, "A model")->check(CLI::ExistingDirectory);
  command->add_option("--shape", options->shape, "110M or 1.1B, with random weights")
    ->excludes(folder);
  auto* only = command->add_option(
    "--only",
    options->only,
    "Parts: machine, transport, collectives, boundary, kernels, model, cluster");
  only->delimiter(',')->allow_extra_args(false);
  command->add_flag("--all", options->all, "All parts")->excludes(only);
  command->add_option("--dtype", options->hold, "Hold weights as f32, f16, bf16, int8 or int4");
  command->add_option("--threads", options->threads, "0: the cores of this host");
  command->add_option("--prompt", options->prompt, "Tokens of the prompt")->capture_default_str();
  command->add_option("--steps", options->steps, "Tokens decoded after it")->capture_default_str();
  command->add_option("--repeats", options->repeats, "Of each work of a cluster")
    ->capture_default_str();
  command->add_option("--seconds", options->seconds, "For each measure of machine and kernels")
    ->capture_default_str();
  add_bench_reports(command, *options);
  command->add_flag("-q,--quiet", options->quiet, "No progress");
  command->callback([=, &chosen] { chosen = [=] { return run_bench_command(*options); }; });
}

void add_model_random(CLI::App* model, action& chosen) {
  auto options = std::make_shared<model_random_options>();
  auto shape = std::make_shared<std::string>("custom");
  auto* command = model->add_subcommand("random", "Write a model with seeded random weights");
  auto& wanted = options->wanted;
  command->add_option("DIR", options->folder, "The folder; made if it is not there")->required();
  command->add_option("--shape", *shape, "110M, 1.1B, or custom: the sizes below")
    ->capture_default_str();
  command->add_option("--family", wanted.family, "llama, mistral, qwen2, qwen3")
    ->capture_default_str();
  command->add_option("--layers", wanted.layers)->capture_default_str();
  command->add_option("--hidden", wanted.hidden)->capture_default_str();
  command->add_option("--heads", wanted.heads)->capture_default_str();
  command->add_option("--kv-heads", wanted.kv_heads)->capture_default_str();
  command->add_option("--head-dim", wanted.head_dim, "0: hidden / heads")->capture_default_str();
  command->add_option("--ffn", wanted.ffn)->capture_default_str();
  command->add_option("--vocabulary", wanted.vocabulary)->capture_default_str();
  command->add_option("--context", wanted.context)->capture_default_str();
  command->add_flag("--tied", wanted.tied_head, "The head is the embedding");
  command->add_option("--dtype", options->stored, "Store as f32, f16 or bf16")
    ->capture_default_str();
  command->add_option("--files", wanted.files, "Weight files")->capture_default_str();
  command->add_option("--seed", wanted.seed)->capture_default_str();
  command->add_option("--threads", options->threads, "0: the cores of this host");
  command->add_flag("-q,--quiet", options->quiet, "No progress");
  command->callback([=, &chosen] {
    chosen = [=] {
      if (auto known = apply_shape(*shape, options->wanted); !known)
        return fail(known.error());
      return run_model_random_command(*options);
    };
  });
}

void add_model(CLI::App& app, action& chosen) {
  auto* command = add_command(app,
                              "model",
                              "Look at a model folder, or write one with random weights",
                              "  troupe model inspect DIR\n"
                              "  troupe model random --shape 110M /tmp/110M\n");
  command->require_subcommand(1);
  add_model_random(command, chosen);
  auto folder = std::make_shared<std::filesystem::path>();
  auto* inspect = command->add_subcommand("inspect", "What it is and holds, from its headers");
  inspect->add_option("DIR", *folder, "The folder")->required()->check(CLI::ExistingDirectory);
  inspect->callback([=, &chosen] { chosen = [=] { return run_model_inspect_command(*folder); }; });
}

int run(int argc, char** argv) {
  CLI::App app{"Troupe runs one language model across many ranks: processes, hosts, devices."};
  app.name("troupe");
  app.footer("\nExamples:\n"
             "  troupe generate --prompt \"In the beginning\"\n"
             "  troupe generate --help\n"
             + std::string(exit_codes));
  app.set_version_flag("--version", version_text(), "What this program is and speaks");
  app.require_subcommand(1);
  action chosen;
  add_generate(app, chosen);
  add_up(app, chosen);
  add_serve(app, chosen);
  add_node(app, chosen);
  add_status(app, chosen);
  add_join(app, chosen);
  add_drain(app, chosen);
  add_stop(app, chosen);
  add_inject(app, chosen);
  add_trace(app, chosen);
  add_doctor(app, chosen);
  add_bench(app, chosen);
  add_model(app, chosen);
  add_plan(app, chosen);
  add_config(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& mistake) {
    if (mistake.get_exit_code() == 0)
      return app.exit(mistake); // Help and version.
    return fail({errc::invalid_config,
                 std::string(mistake.what()) + "\nRun with --help for more information."});
  }
  return chosen();
}

} // namespace

} // namespace troupe::cli

int main(int argc, char** argv) {
  troupe::cli::block_stop_signals();
  troupe::transport::prepare_environment();
  return troupe::cli::run(argc, argv);
}
