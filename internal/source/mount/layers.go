package mount

import "strings"

// maxLayers bounds Layers. The limit of the kernel is 500.
const maxLayers = 512

// Layers returns the directories of an overlay, the writable one first: its options upperdir and lowerdir, and on newer
// kernels one lowerdir+ or datadir+ for each layer. They are paths of the process that mounted it, which may be outside
// this container, or relative to its working directory. Other file systems have none.
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

// Upper returns the writable layer of an overlay; "" if it has none, or is no overlay.
func (e *Entry) Upper() string {
	if e.Type != "overlay" {
		return ""
	}
	return unescape(e.Option("upperdir"))
}

// splitLayers splits at colons without a backslash. Two colons precede data-only layers.
func splitLayers(list string, limit int) []string {
	var layers []string
	var layer strings.Builder
	for i := 0; i <= len(list) && len(layers) < limit; i++ {
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
