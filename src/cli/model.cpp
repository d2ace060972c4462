#include <memory>
#include <string>

#include "base/quantity.hpp"
#include "cli/commands.hpp"
#include "spec/model.hpp"
#include "step/memory_ledger.hpp"

namespace fivefold::cli {
namespace {

void print_shape(const spec::ModelSpec& m) {
  fmt::print("{} ({})\n", m.name, spec::name_of(m.architecture));
  fmt::print("  layers {}, dim {}, heads {} of {}, key-value heads {}, hidden {}, vocabulary {}, "
             "positions {}\n",
             m.num_layers, m.dim, m.num_heads, m.head_dim, m.num_kv_heads, m.hidden_dim,
             m.vocab_size, m.max_seq_len);
  fmt::print("  {}, {}, {}{}{}{}{}\n", m.norm == spec::Norm::rmsnorm ? "RMSNorm" : "LayerNorm",
             m.positions == spec::Positions::rope ? fmt::format("RoPE theta {}", m.rope_theta)
                                                  : "learned positions",
             m.mlp == spec::Mlp::swiglu ? "SwiGLU" : "GELU",
             m.tied_embeddings ? ", tied embedding" : "", m.qkv_bias ? ", q k v bias" : "",
             m.qk_norm ? ", QK-norm" : "",
             m.sliding_window > 0 ? fmt::format(", window {}", m.sliding_window) : "");
  if (m.rope_scaling) fmt::print("  RoPE scaled by {} (Llama 3.1)\n", m.rope_scaling->factor);
  if (m.moe) {
    fmt::print("  {} experts of hidden {}, top {}, {} shared, first {} layers dense\n",
               m.moe->num_experts, m.moe->moe_hidden_dim, m.moe->top_k, m.moe->num_shared_experts,
               m.moe->first_dense_layers);
  }
}

void print_counts(const spec::ModelSpec& m) {
  const spec::ParameterCount c = spec::count_parameters(m);
  const auto row = [&](const char* name, int64_t count) {
    if (count > 0) {
      fmt::print("  {:<10} {:>20}  {:5.1f} %\n", name, grouped(count),
                 100.0 * double(count) / double(c.total()));
    }
  };
  fmt::print("parameters\n");
  row("embedding", c.embedding);
  row("attention", c.attention);
  row("mlp", c.mlp);
  row("moe", c.moe);
  row("norm", c.norm);
  row("head", c.head);
  fmt::print("  {:<10} {:>20}\n", "total", grouped(c.total()));
  if (c.active != c.total()) fmt::print("  {:<10} {:>20}\n", "active", grouped(c.active));
  if (c.mtp > 0) fmt::print("  {:<10} {:>20}  (multi-token prediction, not in the total)\n", "mtp",
                            grouped(c.mtp));
}

Status model_info(const std::string& name) {
  const spec::ModelSpec m = TRY(spec::load_model(name));
  print_shape(m);
  print_counts(m);
  const double n = double(spec::count_parameters(m).total());
  fmt::print("weights    {} in bfloat16, {} in float32\n", to_string(Bytes{2 * n}),
             to_string(Bytes{4 * n}));
  if (!m.moe && !m.mla) {
    fmt::print("compute    {} a token and training step at {} tokens of context (6 N of the products, "
               "12 L q_dim T/2 of causal attention)\n",
               to_string(Flops{step::model_flops_per_token(m, std::min<int64_t>(m.max_seq_len, 8192))}),
               std::min<int64_t>(m.max_seq_len, 8192));
  }
  return {};
}

Status list_presets() {
  for (const std::string& name : spec::preset_names()) {
    const spec::ModelSpec m = TRY(spec::load_model(name));
    fmt::print("{:<22} {:>18} parameters  {}\n", name,
               grouped(spec::count_parameters(m).total()), spec::name_of(m.architecture));
  }
  return {};
}

}  // namespace

void add_model(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("model", "Models: list the presets, show one");
  command->require_subcommand(1);
  CLI::App* info = command->add_subcommand("info", "Shape and parameter counts of a model");
  const auto name = std::make_shared<std::string>();
  info->add_option("MODEL", *name, "Preset, preset file, or Hugging Face config.json")->required();
  info->callback([name, &action] { action = [name] { return model_info(*name); }; });
  command->add_subcommand("list", "The presets")->callback([&action] { action = list_presets; });
}

}  // namespace fivefold::cli
