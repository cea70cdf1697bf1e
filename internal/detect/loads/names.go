package loads

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/source/modelfile"
)

// Files of one model have the same key. A number that counts parts is no part of the key.
var (
	ofParts = regexp.MustCompile(`[-_.]?\d+[-_]of[-_]\d+$`) // model-00001-of-00004
	padded  = regexp.MustCompile(`[-_.]?(0\d+|\d+_\d+)$`)   // consolidated.00, __0_0, shard-003
	counted = regexp.MustCompile(`^(rank|shard|part|tp|pp|mp_rank|consolidated|layer|stage)[-_.]?\d+`)
	total   = regexp.MustCompile(`[-_]of[-_](\d+)$`)
)

// general are names that files of many models have: the folder distinguishes the models. What belongs to the state of a
// training is loaded and saved with its weights.
var general = []string{
	"", "model", "pytorch_model", "diffusion_pytorch_model", "tf_model", "flax_model", "adapter_model", "weights",
	"consolidated", "checkpoint", "optimizer", "optim", "scheduler", "scaler", "rng_state", "training_args",
	"trainer_state",
	"rank", "shard", "part", "tp", "pp", "mp_rank", "layer", "stage", "__", "model_states", "optim_states",
}

func isGeneral(base string) bool { return slices.Contains(general, strings.ToLower(base)) }

// ambiguous extensions are also those of data sets. A file counts only if its name, or that of its folder, names it
// holds a model.
var ambiguous = []string{".bin", ".npz", ".h5", ".pb", ".msgpack", ".mar"}

var (
	ofContent = regexp.MustCompile(`^[0-9a-f]{40,128}$`)

	saysModel = regexp.MustCompile(`(?i)(model|weight|param|checkpoint|ckpt|consolidated|adapter|lora|ggml|unet|vae|encoder|decoder|llama|bert|gpt)`)
	saysData  = regexp.MustCompile(`(?i)(^|[^a-z])(data|dataset|datasets|train|training_data|valid|validation|val|test|tokens?|tokeni[sz]er|vocab|corpus|samples?|features?|embeddings?|images?|videos?|batch(es)?|cache|logs?|index)([^a-z]|$)`)
)

// stem returns the name of a file without its extension, the number of its part, and the number of all parts that the
// name gives; 0 for none.
func stem(name string) (base string, parts int) {
	base = path.Base(name)
	for {
		ext := path.Ext(base)
		if ext == "" || ext == base || !modelfile.Is(base) && !modelfile.IsPartial(name) {
			break
		}
		base = strings.TrimSuffix(base, ext)
	}
	if m := total.FindStringSubmatch(base); m != nil {
		for _, digit := range m[1] {
			parts = min(parts*10+int(digit-'0'), 4096)
		}
		return ofParts.ReplaceAllString(base, ""), parts
	}
	if m := counted.FindStringSubmatch(base); m != nil {
		return m[1], 0
	}
	return padded.ReplaceAllString(base, ""), 0
}

// keyOf returns what the files of one model have in common, and how many files it has; 0 if unknown.
func keyOf(name string) (key string, parts int) {
	if modelfile.Repository(name) != "" {
		before, rest, _ := strings.Cut(name, "/models--")
		folder, _, _ := strings.Cut(rest, "/")
		return before + "/models--" + folder, 0
	}
	if store := storeOf(name); store != "" {
		return store, 0
	}
	base, parts := stem(name)
	dir := path.Dir(name)
	if isGeneral(base) {
		return dir, parts
	}
	return dir + "/" + base, parts
}

// storeOf returns the folder of a store that names files by the hash of their content, in folders by its first digits:
// DIR/ab/cd/abcd... Links lead there, so that the files of one model have nothing else in common. It is "" elsewhere.
func storeOf(name string) string {
	hash := path.Base(name)
	if !ofContent.MatchString(hash) {
		return ""
	}
	for _, digits := range [...]string{hash[:2] + "/" + hash[2:4], hash[:2], hash[:3], hash[:4]} {
		if store, found := strings.CutSuffix(path.Dir(name), "/"+digits); found {
			return store
		}
	}
	return ""
}

// modelOf returns the name of a model by the path of one of its files.
func modelOf(name string) string {
	if found := modelfile.Repository(name); found != "" {
		return found
	}
	base, _ := stem(name)
	if !isGeneral(base) {
		return base
	}
	dir := path.Dir(name)
	if strings.Trim(path.Base(dir), "0123456789") == "" { // a version of Triton
		dir = path.Dir(dir)
	}
	if last := path.Base(dir); last != "/" && last != "." {
		return last
	}
	return base
}

// unnamed is the confidence in a file whose name says nothing. What shows that it holds a model is memory of a GPU that
// grows by as much as was read: then the confidence is copied.
const (
	unnamed = 0.5
	copied  = 0.85
)

// likely returns how likely it is that who reads all of a file loads a model, 0 to 1.
func likely(name string) float64 {
	base := path.Base(name)
	switch ext := strings.ToLower(path.Ext(base)); {
	case modelfile.IsBlob(name):
		return 0.95
	case slices.Contains(ambiguous, ext):
		if saysModel.MatchString(base) || saysModel.MatchString(path.Base(path.Dir(name))) && !saysData.MatchString(base) {
			return 0.9
		}
		return 0.3
	case ext == "":
		return unnamed
	case ext == ".pt" || ext == ".pth" || ext == ".ckpt":
		if saysModel.MatchString(base) {
			return 0.95
		}
		if saysData.MatchString(base) || saysData.MatchString(path.Base(path.Dir(name))) {
			return 0.4
		}
		return 0.85
	}
	return 0.95
}

// clean returns a name without what a terminal would obey.
func clean(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '�' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
}
