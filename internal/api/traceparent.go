package api

import "strings"

// isTraceparent says whether text is a traceparent header of W3C Trace Context: version, trace id, parent id and flags
// in lower-case hexadecimal, neither id all zero. Versions after 00 may carry more behind another dash.
func isTraceparent(text string) bool {
	const length = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if len(text) < length || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return false
	}
	version, trace, parent, flags := text[:2], text[3:35], text[36:52], text[53:length]
	if !isHex(version) || !isHex(trace) || !isHex(parent) || !isHex(flags) {
		return false
	}
	if strings.Trim(trace, "0") == "" || strings.Trim(parent, "0") == "" || version == "ff" {
		return false
	}
	return len(text) == length || version != "00" && text[length] == '-'
}

func isHex(text string) bool { return strings.Trim(text, "0123456789abcdef") == "" }
