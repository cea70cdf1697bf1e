package mount

import "strings"

// maxLayers bounds what Layers gives; the kernel itself stops at 500.
const maxLayers = 512

// Layers are the directories that an overlay is made of, the writable one first: its options upperdir, lowerdir
// and, on newer kernels, one lowerdir+ or datadir+ a layer. They are named as seen by whoever mounted it, which may
// be outside this container, or even relative to where that process stood. Empty for other file systems.
func (e *Entry) Layers() []string {
	var upper, lower []string
	switch e.Type {
	case "overlay", "overlayfs":
	case "ecryptfs":
		return []string{e.Source}
	default:
		return nil
	}
	for option := range strings.SplitSeq(e.options, ",") {
		name, value, _ := strings.Cut(option, "=")
		value = unescape(value)
		switch {
		case value == "" || len(upper)+len(lower) >= maxLayers:
		case name == "upperdir":
			upper = append(upper, value)
		case name == "lowerdir+" || name == "datadir+":
			lower = append(lower, value)
		case name == "lowerdir":
			lower = append(lower, splitLayers(value, maxLayers-len(lower)-len(upper))...)
		}
	}
	return append(upper, lower...)
}

// splitLayers parts at colons, unless a backslash keeps one in a name; two colons introduce data-only layers.
func splitLayers(list string, most int) []string {
	var layers []string
	var layer strings.Builder
	for i := 0; i <= len(list) && len(layers) < most; i++ {
		switch {
		case i == len(list) || list[i] == ':':
			if layer.Len() > 0 {
				layers = append(layers, layer.String())
			}
			layer.Reset()
		case list[i] == '\\' && i+1 < len(list):
			i++
			layer.WriteByte(list[i])
		default:
			layer.WriteByte(list[i])
		}
	}
	return layers
}
