#include "tests/support/scripted_model.hpp"
#include "tests/paths.hpp"

#include "compute/architectures/random_model.hpp"
#include "compute/weights/safetensors.hpp"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace troupe::tests {

namespace {

namespace fs = std::filesystem;

const fs::path demo = fs::path{TROUPE_SOURCE_DIR} / "config" / "demo";

std::string read_all(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  BOOST_REQUIRE_MESSAGE(in, "cannot read " << file);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_all(const fs::path& file, const std::string& bytes) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << bytes;
  out.close();
  BOOST_REQUIRE_MESSAGE(out, "cannot write " << file);
}

void copy_tokenizer(const fs::path& from, const fs::path& to) {
  for (const auto* name : {"tokenizer.json", "tokenizer_config.json", "tokenizer.model"})
    if (fs::exists(from / name))
      fs::copy_file(from / name, to / name, fs::copy_options::overwrite_existing);
}

/// The values of an f32 tensor within the bytes of its file.
class file_of_floats {
public:
  explicit file_of_floats(fs::path file) : path_(std::move(file)), bytes_(read_all(path_)) {
    auto header = compute::read_safetensors_header(path_);
    BOOST_REQUIRE(header);
    tensors_ = std::move(*header);
  }

  void save() const { write_all(path_, bytes_); }

  float* values(const std::string& name) {
    const auto found = std::find_if(
      tensors_.begin(), tensors_.end(), [&](const auto& one) { return one.name == name; });
    BOOST_REQUIRE_MESSAGE(found != tensors_.end(), "no tensor " << name);
    return reinterpret_cast<float*>(bytes_.data() + found->offset);
  }

  void clear_those_that_end_in(const std::string& ending) {
    for (const auto& one : tensors_)
      if (one.name.ends_with(ending))
        std::fill_n(bytes_.begin() + static_cast<std::ptrdiff_t>(one.offset), one.bytes, '\0');
  }

private:
  fs::path path_;
  std::string bytes_;
  std::vector<compute::stored_tensor> tensors_;
};

constexpr std::size_t hidden = 64;

void write_script(const script& wanted, const fs::path& folder) {
  file_of_floats file{folder / "model.safetensors"};
  file.clear_those_that_end_in("o_proj.weight");
  file.clear_those_that_end_in("down_proj.weight");
  file.clear_those_that_end_in("lm_head.weight");
  auto* embedding = file.values("model.embed_tokens.weight");
  auto* head = file.values("lm_head.weight");
  std::fill_n(file.values("model.norm.weight"), hidden, 1.0f);
  for (const auto& [token, next] : wanted.follows)
    for (std::size_t i = 0; i < hidden; ++i)
      head[next * hidden + i] += embedding[token * hidden + i];
  for (const auto token : wanted.loud)
    for (std::size_t i = 0; i < hidden; ++i)
      embedding[token * hidden + i] *= 1e6f;
  file.save();
}

nlohmann::json demo_tokenizer() {
  return nlohmann::json::parse(read_all(demo / "tokenizer.json"));
}

} // namespace

scripted_model::scripted_model(const script& wanted) {
  compute::random_model shape;
  shape.layers = wanted.layers;
  shape.hidden = hidden;
  shape.vocabulary = wanted.vocabulary;
  const auto written =
    compute::write_random_model(folder(), shape, 1, [](std::size_t, std::size_t) {});
  BOOST_REQUIRE_MESSAGE(written, (written ? std::string{} : written.error().what));
  write_script(wanted, folder());
  copy_tokenizer(wanted.tokenizer.empty() ? demo : wanted.tokenizer, folder());
  write_all(folder() / "generation_config.json",
            nlohmann::json{{"eos_token_id", wanted.end_tokens}}.dump());
}

std::vector<std::pair<token_id, token_id>>
chain(const std::vector<token_id>& tokens, std::vector<std::pair<token_id, token_id>> others) {
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
    others.emplace_back(tokens[i], tokens[i + 1]);
  return others;
}

void write_tokenizer_of_parts(const fs::path& folder) {
  auto json = demo_tokenizer();
  auto& vocabulary = json["model"]["vocab"];
  auto& merges = json["model"]["merges"];
  // Byte-level spelling: F0 is U+00F0, 9F U+0141, 98 U+013A, 80 U+0122.
  const std::vector<std::pair<std::string, std::string>> parts{
    {"\u00F0\u0141", "\u013A"}, {"\u013A", "\u0122"}, {"\u00F0", "\u0141"}};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto id = 2047 - (parts.size() - 1 - i);
    for (auto entry = vocabulary.begin(); entry != vocabulary.end(); ++entry)
      if (entry.value() == id) {
        vocabulary.erase(entry);
        break;
      }
    vocabulary[parts[i].first + parts[i].second] = id;
    merges.erase(merges.size() - 1);
  }
  for (std::size_t i = parts.size(); i-- > 0;) // the first to be joined comes first
    merges.push_back({parts[i].first, parts[i].second});
  write_all(folder / "tokenizer.json", json.dump());
  fs::copy_file(demo / "tokenizer_config.json", folder / "tokenizer_config.json");
}

void write_tokenizer_with_extra(const fs::path& folder, token_id id) {
  auto json = demo_tokenizer();
  auto extra = json["added_tokens"][0];
  extra["id"] = id;
  extra["content"] = "<|extra|>";
  json["added_tokens"].push_back(extra);
  write_all(folder / "tokenizer.json", json.dump());
  fs::copy_file(demo / "tokenizer_config.json", folder / "tokenizer_config.json");
}

void write_tokenizer_of_strings(const fs::path& folder) {
  auto json = demo_tokenizer();
  for (auto& merge : json["model"]["merges"])
    if (merge.is_array())
      merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  write_all(folder / "tokenizer.json", json.dump());
  fs::copy_file(demo / "tokenizer_config.json", folder / "tokenizer_config.json");
}

} // namespace troupe::tests
