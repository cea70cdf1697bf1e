//go:build linux && (amd64 || arm64)

package processor

import (
	"os"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"

	"github.com/stallspan/stallspan/internal/window"
)

// read is what a Collector makes of the YAML below "stallspan:".
func read(t *testing.T, text string) (*Config, error) {
	t.Helper()
	var raw map[string]any
	if err := yaml.Unmarshal([]byte(text), &raw); err != nil {
		t.Fatal(err)
	}
	c := createDefaultConfig().(*Config)
	if err := confmap.NewFromStringMap(raw).Unmarshal(c); err != nil {
		return nil, err
	}
	return c, confmap.Validate(c)
}

func TestDefaults(t *testing.T) {
	c, err := read(t, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Conditions) != len(DefaultConditions()) || c.ErrorMode != "ignore" || c.SlowStatus != "" || c.AssumeLocal ||
		c.NodeName != "" || c.Sampling != nil {
		t.Errorf("defaults: got %+v, want the default conditions and nothing else", c)
	}
	for _, text := range []string{"conditions: []", "conditions: ['name == \"a\"']"} {
		if c, err = read(t, text); err != nil || len(c.Conditions) > 1 {
			t.Errorf("%s: got %+v, %v, want only its conditions", text, c, err)
		}
	}
	if c, err = read(t, "sampling: {}"); err != nil || c.Sampling == nil {
		t.Errorf("sampling without keys: got %+v, %v, want the defaults", c, err)
	}
	var _ component.Config = c
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"condition: []":                             "invalid keys: condition",
		"sampling: {intervall: 1s}":                 "invalid keys: intervall",
		"sampling: {interval: 1ms}":                 "sampling: interval: the sampling interval is 1ms",
		"sampling: {root_path: hostfs}":             "root_path: \"hostfs\" does not begin with /",
		"slow_status: ok":                           `slow_status: "ok" is unknown: choose unset or error`,
		"span_names: indexed":                       "invalid keys: span_names", // names are the user's
		"error_mode: propagate":                     "would drop spans",
		"error_mode: loud":                          "unknown error mode loud",
		"error_mode: ''":                            "unknown error mode",
		`conditions: ['true', 'name == ']`:          `conditions[1]: "name == ": condition has invalid syntax at 1:9`,
		`conditions: ['span.nam == "x"']`:           `conditions[0]: "span.nam == \"x\""`,
		`conditions: ['Frobnicate(name)']`:          `conditions[0]: "Frobnicate(name)"`,
		`conditions: ['IsMatch(name, "(")']`:        `conditions[0]`,
		`conditions: ['metric.name == "x"']`:        `conditions[0]`,
		`conditions: ['set(attributes["a"], "b")']`: `conditions[0]`,
		"conditions: {a: b}":                        "conditions",
	} {
		if _, err := read(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// The default conditions are met by these names and not by those.
func TestDefaultConditions(t *testing.T) {
	all, err := parse(DefaultConditions())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"Load model": true, "Load weights": true, "Loading (GPU)": true, "Loading (CPU)": true, "model.load": true,
		"model.artifacts.load": true, "inference_models.load": true,
		"epoch": true, "Epoch 3": true, "EPOCH": true, "epoch_12": true, "train_epoch": true, "train_one_epoch": true,
		"training epoch": true, "run_training_epoch": true, "epoch #4": true, "TrainEpoch": true,
		"megatron.load_checkpoint": true, "megatron.load_checkpoint.io_read": true, "megatron.save_checkpoint": true,
		"megatron.save_checkpoint.io_write": true, "megatron.train_step": true, "megatron.checkpoint.load": true,
		"megatron.checkpoint.save.io_write": true, "megatron.train.iteration": true,
		"nv.dl.training.checkpoint.load": true, "nv.dl.training.checkpoint.load.io_read": true,
		"nv.dl.training.checkpoint.save": true, "nv.dl.training.checkpoint.save.finalize": true,
		"nv.dl.training.iteration": true, "checkpoint_load": true, "checkpoint_save_async": true,
		"checkpoint_save_finalization": true, "training_single_iteration": true, "vllm.load_model": true,
		"rl.train.load_weights": true, "load_model": true, "loadModel": true, "ModelLoader.load": true,
		"Reload weights": true, "restore_checkpoint": true, "save_model": true, "lens.epoch": true, "trainer.epoch": true,
		"Epoch/3": true, "train step 12": true, "rl.grpo.step": true, "rl.sft_v2.step": true, "rl.ppo.checkpointing": true,
		"rl.policy.load_model": true, "nv.nvrx.ckpt.save.request": true, "nvrx.ckpt.save.write": true,
		"nv.nvrx.ckpt.save.finalize": true, "rl.env.step": false, "rl.grpo.data_processing": false, "rl.grpo.job": false,
		"nv.nvrx.ckpt.save.stage_wait": false, "nv.dl.training.iter_block": false, "gradient_checkpointing": false,
		"nv.dl.training.checkpoint.exposed_save": false, "Overall Loading": false, "Init device": false,
		"megatron.pretrain": false, "nv.dl.training.evaluate.step": false, "validation_single_iteration": false,
		"nv.dl.training.iteration.optimizer_step": false, "megatron.checkpoint.save.state_dict": false,
		"upload_model": false, "download model": false, "val.epoch": false, "test/epoch 3": false, "step": false,
		"save_checkpoint_metadata": false, "load_config": false, "": false, "load": false, "llm_request": false, "val_epoch": false, "epochs": false, "epoch 3 of 5": false,
		"model.artifacts.download": false, "GET /models/load": false, "preload model": false, "epoch\n": false,
	} {
		traces, to := batch()
		span := to.AppendEmpty()
		span.SetName(name)
		rs := traces.ResourceSpans().At(0)
		failed := func(_ *condition, err error) { t.Error(err) }
		if got := all.met(rs, rs.ScopeSpans().At(0), span, failed); got != want {
			t.Errorf("condition on %q: got %v, want %v", name, got, want)
		}
		if want && kindByName(name) == window.Custom {
			t.Errorf("%q meets a condition, and has no kind of its own", name)
		}
	}
}

// Conditions may write a path with its context's name or leave "span." out, as in the filter processor.
func TestPaths(t *testing.T) {
	all, err := parse([]string{
		`span.attributes["a"] == 1 and resource.attributes["b"] == "x"`, `attributes["a"] == 2 and kind == SPAN_KIND_SERVER`,
		`IsRootSpan() and scope.name == "mine"`, `end_time_unix_nano - start_time_unix_nano > 60000000000`,
	})
	if err != nil || len(all) != 4 {
		t.Fatal(err)
	}
}

// README.md shows the default conditions.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range DefaultConditions() {
		if !strings.Contains(string(text), "\n  - "+c+"\n") {
			t.Errorf("README.md lacks %s", c)
		}
	}
}
