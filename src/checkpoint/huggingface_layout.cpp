#include "checkpoint/huggingface_layout.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace fivefold::checkpoint {
namespace {

constexpr std::string_view layers = "model.layers.";

// "17" and "self_attn.q_proj.weight" of "model.layers.17.self_attn.q_proj.weight".
struct LayerName {
  int64_t layer = 0;
  std::string_view rest;
};
std::optional<LayerName> in_layer(std::string_view name, std::string_view before) {
  if (!name.starts_with(before)) return {};
  name.remove_prefix(before.size());
  LayerName found;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, found.layer);
  if (error != std::errc{} || stop == end || *stop != '.') return {};
  found.rest = name.substr(size_t(stop + 1 - name.data()));
  return found;
}

// GPT-2's own names. `fused`: the parameter and the two after it (q, k, v) make one tensor.
struct Gpt2Name {
  std::string_view ours, theirs;
  bool transposed = false, fused = false;
};
constexpr Gpt2Name gpt2_outside[] = {
    {"model.embed_tokens.weight", "wte.weight"},
    {"model.embed_positions.weight", "wpe.weight"},
    {"model.norm.weight", "ln_f.weight"},
    {"model.norm.bias", "ln_f.bias"},
};
constexpr Gpt2Name gpt2_in_layer[] = {
    {"input_layernorm.weight", "ln_1.weight"},
    {"input_layernorm.bias", "ln_1.bias"},
    {"self_attn.q_proj.weight", "attn.c_attn.weight", true, true},
    {"self_attn.q_proj.bias", "attn.c_attn.bias", false, true},
    {"self_attn.o_proj.weight", "attn.c_proj.weight", true},
    {"self_attn.o_proj.bias", "attn.c_proj.bias"},
    {"post_attention_layernorm.weight", "ln_2.weight"},
    {"post_attention_layernorm.bias", "ln_2.bias"},
    {"mlp.up_proj.weight", "mlp.c_fc.weight", true},
    {"mlp.up_proj.bias", "mlp.c_fc.bias"},
    {"mlp.down_proj.weight", "mlp.c_proj.weight", true},
    {"mlp.down_proj.bias", "mlp.c_proj.bias"},
};

const Gpt2Name* find(std::span<const Gpt2Name> table, std::string_view ours) {
  const auto it =
      std::find_if(table.begin(), table.end(), [&](const Gpt2Name& n) { return n.ours == ours; });
  return it == table.end() ? nullptr : &*it;
}

Result<ForeignTensor> gpt2_tensor(const ParameterSet& parameters, const Parameter& p) {
  const std::optional<LayerName> inner = in_layer(p.spec.name, layers);
  const Gpt2Name* name = inner ? find(gpt2_in_layer, inner->rest) : find(gpt2_outside, p.spec.name);
  if (name == nullptr) {
    return invalid_input(
        "a GPT-2 model of Hugging Face has no place for our {}; its options "
        "(norm, positions, mlp, biases, tied_embeddings) must be GPT-2's own",
        p.spec.name);
  }
  ForeignTensor tensor;
  tensor.name = inner ? fmt::format("{}h.{}.{}", gpt2_prefix, inner->layer, name->theirs)
                      : fmt::format("{}{}", gpt2_prefix, name->theirs);
  tensor.transposed = name->transposed;
  tensor.parts = {&p};
  if (name->fused) {
    for (const char other : {'k', 'v'}) {
      std::string sibling = p.spec.name;
      sibling[sibling.find("q_proj")] = other;
      tensor.parts.push_back(&parameters.at(sibling));
    }
  }
  tensor.shape = p.spec.shape;
  tensor.shape[0] = 0;
  for (const Parameter* part : tensor.parts) tensor.shape[0] += part->spec.shape[0];
  if (tensor.transposed) std::swap(tensor.shape[0], tensor.shape[1]);
  return tensor;
}

}  // namespace

Result<std::vector<ForeignTensor>> foreign_layout(const spec::ModelSpec& model,
                                                  const ParameterSet& parameters) {
  std::vector<ForeignTensor> tensors;
  const bool gpt2 = model.architecture == spec::Architecture::gpt2;
  if (!gpt2 && model.architecture != spec::Architecture::llama) {
    return invalid_input(
        "weights of the {} architecture cannot be imported or exported yet; llama "
        "and gpt2 can",
        spec::name_of(model.architecture));
  }
  for (const Parameter& p : parameters.all()) {
    if (!gpt2) {
      tensors.push_back({p.spec.name, p.spec.shape, false, {&p}});
    } else if (p.spec.name.find("k_proj") == std::string::npos &&
               p.spec.name.find("v_proj") == std::string::npos) {  // those come with q_proj
      tensors.push_back(TRY(gpt2_tensor(parameters, p)));
    }
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const ForeignTensor& a, const ForeignTensor& b) { return a.name < b.name; });
  return tensors;
}

bool is_known_buffer(const spec::ModelSpec& model, std::string_view name) {
  if (model.architecture == spec::Architecture::gpt2) {
    if (name.starts_with(gpt2_prefix)) name.remove_prefix(gpt2_prefix.size());
    const std::optional<LayerName> inner = in_layer(name, "h.");
    return inner && inner->layer < model.num_layers &&
           (inner->rest == "attn.bias" || inner->rest == "attn.masked_bias");
  }
  const std::optional<LayerName> inner = in_layer(name, layers);
  return name == "model.rotary_emb.inv_freq" || (inner && inner->layer < model.num_layers &&
                                                 inner->rest == "self_attn.rotary_emb.inv_freq");
}

std::string_view embedding_name(const spec::ModelSpec& model) {
  return model.architecture == spec::Architecture::gpt2 ? "transformer.wte.weight"
                                                        : "model.embed_tokens.weight";
}

Result<std::map<std::string, std::string>> parse_index(std::string_view text,
                                                       const std::string& name) {
  using nlohmann::json;
  std::set<std::string> seen;
  std::string duplicate;
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start && depth <= 1) seen.clear();
    if (event == json::parse_event_t::key && depth == 2) {
      const auto& key = value.get_ref<const std::string&>();
      if (!seen.insert(key).second && duplicate.empty()) duplicate = key;
    }
    return true;
  };
  json index;
  try {
    index = json::parse(text.begin(), text.end(), watch);
  } catch (const json::parse_error& error) {
    return invalid_input("{}: not JSON (byte {})", name, error.byte);
  } catch (const json::exception&) {
    return invalid_input("{}: holds a number out of range", name);
  }
  if (!duplicate.empty()) return invalid_input("{}: lists \"{}\" twice", name, duplicate);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    return invalid_input("{}: has no weight_map: not an index of safetensors shards", name);
  }
  std::map<std::string, std::string> map;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    const std::string shard = file.is_string() ? file.get<std::string>() : "";
    // Only files beside the index: a name such as ../../x must not reach elsewhere.
    if (shard.empty() || shard.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
      return invalid_input("{}: the file of tensor {} is not a plain file name", name, tensor);
    }
    map[tensor] = shard;
  }
  return map;
}

}  // namespace fivefold::checkpoint
