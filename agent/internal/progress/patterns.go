package progress

// mark is the meaning of a line that matches a pattern.
type mark uint8

const (
	starts     mark = iota + 1 // the line is printed as the epoch begins
	progresses                 // printed during an epoch: the first line with a new number starts it
	ends                       // printed when the epoch is over
	reaches                    // "epoch" is the amount done: at 1.0 epoch 0 is over and epoch 1 begins
	finishes                   // the whole training is over
	announces                  // a table's heading: identifies the framework only
	beginsLoad                 // printed before the model is read
	endsLoad                   // printed once the model is loaded, or could not be
)

// pattern is one format of line. Its expression may have the groups epoch, total (number of epochs), step and steps
// (progress within the epoch), and model.
type pattern struct {
	framework string
	marks     mark
	literal   string // the expression is tried only on lines with it; epochWord is special
	expr      string
	example   string
}

// epochWord as a pattern's literal means that the expression begins with the word "Epoch" and its number. It is tried
// only at that word, and only after a lead.
const epochWord = "epoch N"

// lead matches the text before the word: a logger's prefix (a level with a logger's name, a container's name, glog's
// header, timestamps, ranks in brackets), and a word such as "starting". Other words do not match, so that "Best epoch
// 3" is not an epoch.
const lead = `^(?:.*\b(?:INFO|DEBUG)\b[^A-Za-z]*(?:[\w.]+(?::[\w.]+)*\s*[-:|\]]\s*)?|\S+\s*\|\s+|[IWD]\d{4} .*?\]\s+|\d{4}-\d\d-\d\dT[\d:.,]+Z?\s)?` +
	`(?:\[[^\]]*\]|[^A-Za-z])*(?i:(?:start|starting|begin|beginning|running|train|training)\s+){0,2}$`

const (
	// number is "Epoch 3", "Epoch: 3/10", "epoch [3/10]", "epoch=3", "Epoch 3 of 10".
	number = `(?:Epoch|EPOCH|epoch)\s*(?:[:=#]\s*)?` + count
	// heading is number on a line of its own. "epoch: 100" is a setting more often than a heading.
	heading = `(?:(?:Epoch|EPOCH)\s*(?:[:=#]\s*)?|epoch(?:\s+#?|=))` + count
	count   = `[\[(]?\s*(?P<epoch>\d+)\b\s*(?:(?:/|of)\s*(?P<total>\d+)\b\s*)?[\])]?`
	shown   = `\s*(?P<step>\d+)\s*(?:/|of)\s*(?P<steps>\d+)\b`
	stepped = `[^A-Za-z0-9%]*(?i:(?:global_?)?(?:step|iter|iteration|batch|it)s?)`
	// duration is 12.3s, 2 min, 1m 23s, (0:02:51). A rate such as 12.3s/it is no duration.
	duration = `(?:(?:\d+(?:\.\d+)?\s*(?:h|hours?|m|min|mins|minutes?|s|sec|secs|seconds?)\b\s*){1,3}|` +
		`(?:\d+:)?\d+:\d\d(?:\.\d+)?)(?:[\s\]),;|]|$)`
	// metric is a result that is printed after an epoch.
	metric = `(?i:(?:` + part + `)[ _/-]*){0,3}(?i:loss|cost|acc|accuracy|error|err|mse|mae|rmse|f1|auc|iou|miou|dice|` +
		`map|psnr|ssim|bleu|wer|cer|nll|elbo|score|precision|recall|perplexity|ppl|reward|return|lr|time|elapsed|duration|` +
		`took|completed?|finished|done|ended|summary|results)(?:\b|_)`
	part = `train|training|val|valid|validation|eval|test|avg|average|mean|total|epoch|final|running|g|d`
	// key is the number of an epoch in a line of JSON.
	key      = `^\s*\{(?:.*,\s*)?"epoch":\s*(?P<epoch>\d+)\s*[,}]`
	counted  = `"(?:global_?)?(?:step|iter|iteration|batch)":`
	measured = `"(?:train|val|valid|test|eval|avg|mean)_?(?:loss|acc|accuracy)\w*":` // a loss alone may be that of a step
)

// epochPatterns are tried in this order. The first match decides the run's framework.
var epochPatterns = []pattern{
	{"Keras", starts, "Epoch ", `^Epoch (?P<epoch>\d+)/(?P<total>\d+)\s*$`, "Epoch 1/10"},
	{"Lightning", progresses, "%|", `^\s*(?:[\[(][^\])]*[\])]:?\s*)?(?:Train(?:ing)?\s+)?` + number +
		`[^%|0-9]*\d+%\|[^|]*\|` + shown,
		"Epoch 0:  22%|██▏       | 4/18 [00:17<01:02,  4.47s/it, loss=10.072, v_num=3]"},
	{"Lightning", progresses, "it/s", `^\s*Epoch (?P<epoch>\d+):[ :]*(?:\|\s+\|\s*)?\d+(?:/\?|it) \[`,
		"Epoch 0: |          | 12/? [00:01<00:00,  9.71it/s, v_num=3]"},
	{"Lightning", progresses, "━", `^\s*Epoch (?P<epoch>\d+)(?:/-?\d+)?\s+[━╸╺ ]+` + shown,
		"Epoch 0/9  ━━━━━━━━━━━━━━━━━━━━━━━━ 264/264 0:02:51 • 0:00:00 1.53it/s v_num: 9"},
	{"tqdm over epochs", reaches, "%|",
		`^\s*(?:[Tt]rain(?:ing)?\s+)?(?:Epoch|EPOCH|epoch)s?:\s+\d+%\|[^|]*\|\s*(?P<epoch>\d+)/(?P<total>\d+) \[`,
		"Epoch:  33%|███▎      | 1/3 [00:42<01:24, 42.17s/it]"},
	{"PyTorch ImageNet example", progresses, epochWord, `Epoch: \[(?P<epoch>\d+)\]\s*\[` + shown + `\]`,
		"Epoch: [0][  10/5005]\tTime  0.315 ( 0.372)\tData  0.002 ( 0.073)\tLoss 6.9802e+00 (7.0827e+00)"},
	{"PyTorch MNIST example", progresses, epochWord, `Epoch:? (?P<epoch>\d+)\s*\[` + shown + ` \(\d+%\)`,
		"Train Epoch: 1 [640/60000 (1%)]\tLoss: 1.517678"},
	{"Hugging Face Trainer", finishes, "{'train_runtime'",
		`\{'train_runtime': (?:.*'epoch': '?(?P<epoch>\d+(?:\.\d+)?(?:e-\d+)?)'?)?`,
		"{'train_runtime': 331.72, 'train_samples_per_second': 0.099, 'train_loss': 13.37, 'epoch': 3.0}"},
	{"Hugging Face Trainer", reaches, "'epoch': ", `\{'\w+': .*'epoch': '?(?P<epoch>\d+(?:\.\d+)?(?:e-\d+)?)'?[,}]`,
		"{'loss': 1.7631, 'grad_norm': 1.037, 'learning_rate': 3.6e-06, 'epoch': 0.38}"},
	{"Ultralytics", announces, "_mem ", `^\s*Epoch\s+(?:GPU|gpu)_mem\s`,
		"      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size"},
	{"Ultralytics", progresses, "G ", `^\s*(?P<epoch>\d+)/(?P<total>\d+)\s+[\d.]+G\s(?:.*%[^%]*[|━─]` + shown + `)?`,
		"      1/100      2.21G      1.215      2.921      1.343         23        640:  12%|█▏        | 12/99 " +
			"[00:05<00:40,  2.15it/s]"},
	{"MMEngine", progresses, "Epoch(train)", `Epoch\(train\)\s+\[\s*(?P<epoch>\d+)\]\[` + shown + `\]`,
		"06/07 12:00:00 - mmengine - INFO - Epoch(train)  [1][ 50/100]  lr: 1.0000e-02  eta: 0:00:25  time: 0.0101  loss: " +
			"11.4723"},
	{"MMCV", progresses, "INFO - Epoch [", `- INFO - Epoch \[(?P<epoch>\d+)\]\[` + shown + `\]`,
		"2020-05-08 18:56:16,649 - mmdet - INFO - Epoch [1][2400/7517]\tlr: 0.00125, eta: 4:33:09, time: 0.595"},
	{"timm", progresses, "Train: ", `\bTrain: (?P<epoch>\d+) \[` + shown + ` \(\s*\d+%\)\]`,
		"Train: 0 [  50/1251 (  4%)]  Loss:  6.928 (6.918)  Time: 1.462s,   87.53/s"},
	{"epoch and step", progresses, epochWord, number + `(?:` + stepped + `[^A-Za-z0-9]*|[^A-Za-z0-9%]*)` + shown,
		"Epoch [1/5], Step [100/600], Loss: 2.2450"},
	{"epoch and step", progresses, epochWord, number + stepped + `\b[^A-Za-z0-9]*(?P<step>\d+)`, "epoch=1 step=100 loss=2.2450"},
	{"epoch summary", ends, epochWord, number + `[^A-Za-z0-9]*` + metric, "Epoch 3 | train loss 0.412 | val loss 0.511"},
	{"epoch summary", ends, epochWord, number + `[^A-Za-z0-9]*(?i:` + part + `)[^A-Za-z0-9]*\d+\.\d+`,
		"epoch 3: train 0.4120, val 0.5110"},
	{"epoch summary", ends, epochWord, number + `[^A-Za-z0-9]+(?:in\s+)?` + duration, "Epoch 3/10 - 12.3s"},
	{"epoch summary", ends, "poch", `\b(?i:finished|completed|end of|done with)\s+(?i:training\s+)?` + number,
		"| end of epoch   3 | time: 12.3s | valid loss  5.11"},
	{"lines of JSON", progresses, `"epoch":`, `^\s*\{.*` + counted + `.*"epoch":\s*(?P<epoch>\d+)\s*[,}]`,
		`{"step": 100, "epoch": 3, "loss": 0.412}`},
	{"lines of JSON", progresses, `"epoch":`, key + `.*` + counted, `{"epoch": 3, "step": 100, "loss": 0.412}`},
	{"lines of JSON", ends, `"epoch":`, key + `.*` + measured, `{"epoch": 3, "train_loss": 0.412}`},
	{"lines of JSON", ends, `"epoch":`, `^\s*\{.*` + measured + `.*"epoch":\s*(?P<epoch>\d+)\s*[,}]`,
		`{"train_loss": 0.412, "epoch": 3}`},
	{"fastai", announces, "poch", `^\s*epoch\s+train_loss\s`, "epoch     train_loss  valid_loss  accuracy  time"},
	{"fastai", ends, ".", `^\s*(?P<epoch>\d+)(?:\s+\d+\.\d+)+\s+(?:\d+:)?\d\d:\d\d\s*$`,
		"3         0.412000    0.511000    0.873000  00:12"},
	{"epoch heading", starts, epochWord, heading +
		`[^A-Za-z0-9]*(?i:started|starting|starts|begins)?[^A-Za-z0-9]*(?:\s\S+\.py:\d+\s*)?$`, "===== Epoch 3 ====="},
	{"epoch heading", starts, epochWord, `epoch: (?P<epoch>\d+)\s*(?:/|of)\s*(?P<total>\d+)\s*$`, "epoch: 3/10"},
}

// loadPatterns come in pairs. A framework's end ends only loads that the same framework began.
var loadPatterns = []pattern{
	{"vLLM", beginsLoad, "Starting to load model ", `Starting to load model (?P<model>\S+?)(?:\.\.\.)?\s*$`,
		"INFO 02-07 19:23:56 gpu_model_runner.py:867] Starting to load model ibm-granite/granite-3.0-3b-a800m-instruct..."},
	{"vLLM", endsLoad, "oad", `Model loading took [\d.]+ Gi?B|Loading model weights took [\d.]+ Gi?B`,
		"(EngineCore_DP0 pid=66914) INFO 09-21 12:30:37 [gpu_model_runner.py:2581] Model loading took 2.2845 GiB and " +
			"74.270197 seconds"},
	{"SGLang", beginsLoad, "Load weight begin.", `Load weight begin\.`,
		"[2025-10-16 09:06:10 TP0] Load weight begin. avail mem=137.34 GB"},
	{"SGLang", endsLoad, "Load weight end.", `Load weight end\.`,
		"[2025-12-02 12:01:19] Load weight end. type=LlamaForCausalLM, dtype=torch.float16, avail mem=77.39 GB"},
	{"Triton", beginsLoad, "loading: ", `\.cc:\d+\] "?loading: (?P<model>\S+?):\d+"?\s*$`,
		"I0523 23:56:44.571218 1 model_lifecycle.cc:459] loading: resnet50:1"},
	{"Triton", endsLoad, "loaded '", `\.cc:\d+\] "?successfully loaded '(?P<model>[^']+)'`,
		"I1004 15:52:17.657312 195 model_lifecycle.cc:839] \"successfully loaded 'pepsi_onnx'\""},
	{"TensorFlow Serving", beginsLoad, "Loading servable version {",
		`\] Loading servable version \{name: (?P<model>\S+) version: \d+\}`,
		"2020-11-25 07:15:05.348822: I tensorflow_serving/core/loader_harness.cc:74] Loading servable version {name: " +
			"tracking version: 1}"},
	{"TensorFlow Serving", endsLoad, "loaded servable version {",
		`\] Successfully loaded servable version \{name: (?P<model>\S+) version: \d+\}`,
		"2019-01-22 02:45:13.159513: I tensorflow_serving/core/loader_harness.cc:86] Successfully loaded servable version " +
			"{name: vgg16 version: 1}"},
	{"TensorFlow Serving", endsLoad, "load failure", `Servable: \{name: (?P<model>\S+) version: \d+\} load failure`,
		"E tensorflow_serving/core/loader_harness.cc:104] Servable: {name: shiguoyu version: 1} load failure: Not found"},
	{"TorchServe", beginsLoad, "-> WORKER_STARTED", `W-\d+-(?P<model>\S+)_[\d.]+ State change \S+ -> WORKER_STARTED`,
		"2024-04-23T05:00:36,404 [DEBUG] W-9003-policy_1.0 org.pytorch.serve.wlm.WorkerThread - W-9003-policy_1.0 State " +
			"change null -> WORKER_STARTED"},
	{"TorchServe", endsLoad, "-> WORKER_MODEL_LOADED",
		`W-\d+-(?P<model>\S+)_[\d.]+ State change \S+ -> WORKER_MODEL_LOADED`,
		"2020-06-08 05:23:10,348 [DEBUG] W-9009-densenet161_1.0 org.pytorch.serve.wlm.WorkerThread - " +
			"W-9009-densenet161_1.0 State change WORKER_STARTED -> WORKER_MODEL_LOADED"},
	{"Ollama", beginsLoad, "msg=\"starting ", `msg="starting (?:llama server|runner)" cmd=".* --model (?P<model>\S+)`,
		"time=2025-03-05T06:58:54.116Z level=INFO source=server.go:380 msg=\"starting llama server\" " +
			"cmd=\"/usr/bin/ollama runner --model /root/.ollama/models/blobs/sha256-8c625c --ctx-size 8192\""},
	{"Ollama", endsLoad, "llama runner started in", `msg="llama runner started in [\d.]+ seconds"`,
		"time=2026-02-02T12:29:02.735Z level=INFO source=server.go:1339 msg=\"llama runner started in 29.96 seconds\""},
	{"llama.cpp", beginsLoad, "llama_model_loader: loaded meta data",
		`llama_model_loader: loaded meta data with .* from (?P<model>.+) \(version`,
		"llama_model_loader: loaded meta data with 22 key-value pairs and 291 tensors from " +
			"./models/Meta-Llama-3-8B-Instruct-q8_0.gguf (version GGUF V3 (latest))"},
	{"llama.cpp", endsLoad, "llama_", `llama_context: constructing llama_context|llama_new_context_with_model: n_`,
		"llama_context: constructing llama_context"},
	{"Stable Diffusion web UI", beginsLoad, "Loading weights [", `^Loading weights \[\w+\] from (?P<model>.+?)\s*$`,
		"Loading weights [d7049739] from /models/Stable-diffusion/v1-5-pruned-emaonly.safetensors"},
	{"Stable Diffusion web UI", endsLoad, " loaded", `^(?:Model loaded in|Weights loaded\.? in) `,
		"Model loaded in 9.5s (load weights from disk: 0.3s, create model: 0.5s, apply weights to model: 3.7s)."},
	{"Diffusers", beginsLoad, "Loading pipeline components", `Loading pipeline components\.\.\.:\s+0%`,
		"Loading pipeline components...:   0%|          | 0/4 [00:00<?, ?it/s]"},
	{"Diffusers", endsLoad, "Loading pipeline components", `Loading pipeline components\.\.\.: 100%`,
		"Loading pipeline components...: 100%|██████████| 4/4 [00:03<00:00,  1.24it/s]"},
	{"Transformers", beginsLoad, "Loading ", `Loading (?:\w+ )?(?:checkpoint shards|weights):\s+0%`,
		"Loading checkpoint shards:   0%|          | 0/2 [00:00<?, ?it/s]"},
	{"Transformers", endsLoad, "Loading ", `Loading (?:\w+ )?(?:checkpoint shards|weights): 100%`,
		"Loading safetensors checkpoint shards: 100% Completed | 2/2 [00:02<00:00,  1.33s/it]"},
}

// Every line that can match holds one of these, except Ultralytics' rows, which are tried only after their heading.
// Nearly every line holds none of them, and costs only a few short searches.
var (
	epochGates = []string{"poch", "POCH", "Train: "}
	loadGates  = []string{"oad", "llama", "WORKER_"}
)
