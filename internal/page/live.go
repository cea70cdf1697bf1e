package page

// JobsPath is where a page of WriteLive asks for the jobs of GPUs.
const JobsPath = "/v1/jobs"

// Live is a page's data with what a page of WriteLive needs to go on.
type Live struct {
	Data
	Now  float64 `json:"now_s"`  // end of the curves, after the origin
	Span float64 `json:"span_s"` // that was asked for; the curves may be shorter, and grow to it

	Oldest float64 `json:"oldest_s"` // the first time that may be known
	Latest float64 `json:"latest_s"` // the last one, when the server answered

	Events []Event `json:"events"` // by time; null if the server has none
}

// Update is what is new since a Live or the Update before.
type Update struct {
	Now     float64  `json:"now_s"`
	Curves  Curves   `json:"curves"`
	Windows []Window `json:"windows"` // that run, or have ended since; each replaces the one with its id
	Events  []Event  `json:"events"`  // since the data before
}
