package smart

import (
	"cmp"
	"fmt"
)

// result is the result of a self-test.
type result struct {
	Value number `json:"value"`
	Text  word   `json:"string"`
}

// ataTests is a self-test log of an ATA drive, the newest test first.
type ataTests struct {
	Table list[struct {
		Status result `json:"status"`
	}] `json:"table"`
}

// scsiTest is an entry of a SCSI drive's self-test log (SPC-5, log page 10h).
type scsiTest struct {
	Result result `json:"result"`
}

// The codes of failed tests. 0 is a test without error. All others were aborted or are running.
var failedCodes = map[string]struct{ first, last, shift int }{
	"ATA":  {3, 8, 4}, // ACS-4, self-test execution status: the upper four bits
	"SCSI": {3, 7, 0}, // SPC-5, self-test results log page
	"NVMe": {5, 7, 0}, // NVM Express Base Specification, log page 06h
}

// failedTest returns smartctl's text for the last self-test that was not aborted, if it failed, else "". The self-test
// logs are part of smartctl -a, but not of what Source reads.
func (doc *document) failedTest(protocol string) string {
	codes := failedCodes[protocol]
	for _, r := range doc.tests(protocol) {
		if !r.Value.within(0, 255) {
			continue
		}
		switch code := int(r.Value.value) >> codes.shift; {
		case code == 0:
			return ""
		case code >= codes.first && code <= codes.last:
			return cmp.Or(string(r.Text), fmt.Sprintf("code %d", code))
		}
	}
	return ""
}

// tests returns the results of self-tests, the newest first.
func (doc *document) tests(protocol string) []result {
	var all []result
	switch protocol {
	case "ATA":
		log := doc.ATATests.Extended.Table
		if len(log) == 0 {
			log = doc.ATATests.Standard.Table
		}
		for i := range log {
			all = append(all, log[i].Status)
		}
	case "NVMe":
		for i := range doc.NVMeTests.Table {
			all = append(all, doc.NVMeTests.Table[i].Result)
		}
	case "SCSI":
		all = append(all, doc.SCSITest0.Result, doc.SCSITest1.Result, doc.SCSITest2.Result)
	}
	return all
}
