package windows

// After returns a reading from after a moment.
var After = (*Spans).after
