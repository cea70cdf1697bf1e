"""What was found, as a page of markdown for docs/internals/results.md."""

WORDS = {True: "yes", False: "**no**", None: "not judged"}


def cell(value):
    if isinstance(value, float):
        value = f"{value:.4g}"
    return " ".join(str(value).split()).replace("|", "/")


def row(*cells):
    return "| " + " | ".join(cell(c) for c in cells) + " |"


def markdown(result):
    lines = []
    if result["fake"]:
        lines += ["No GPU was asked: these figures are of the stand-in (testdata/fakenvml).", ""]
    keys = ("gpu", "driver", "nvml", "cuda", "torch", "kernel", "cpus", "memory_gib", "disk", "stallspan")
    known = [f"{key.replace('_gib', ' GiB')} {cell(result[key])}" for key in keys if result.get(key)]
    lines += ["; ".join(known) + ".", "", row("part", "figure", "measured", "aim", "reached"), row(*["---"] * 5)]
    for name, part in result["parts"].items():
        for aim in part["aims"]:
            lines.append(row(name, aim["what"], aim["measured"], aim["aim"], WORDS[aim["ok"]]))
        if part["skipped"] or (part["ok"] is not True and not part["aims"]) or part.get("traceback"):
            lines.append(
                row(name, "not run" if part["skipped"] or part["ok"] is None else "failed", part["why"], "", "")
            )
    return "\n".join(lines)
