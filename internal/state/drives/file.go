package drives

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/state"
)

// records are the drives of a file by their ID.
type records map[string]*Record

const fileVersion = 2 // 1 is the form that parseVersion1 reads

func newFile(path string, report func(error)) *state.File[records] {
	return &state.File[records]{
		Path: path, Name: "drives", Version: fileVersion, Owned: true, Check: check, Old: parseVersion1, Report: report,
	}
}

func check(all records) error {
	for id, r := range all {
		if r == nil || id == "" || r.Drive.ID != id {
			return fmt.Errorf("the record of drive %.80q has another ID", id)
		}
	}
	return nil
}

// heading begins the first line of a file of version 1. The version and a checksum of the other lines follow.
const heading = "stallspan drives "

func parseVersion1(text []byte) (all records, err error) {
	line, body, _ := bytes.Cut(text, []byte("\n"))
	rest, ok := strings.CutPrefix(string(line[:min(len(line), 80)]), heading)
	if !ok {
		return nil, state.ErrForeign
	}
	version, sum, _ := strings.Cut(rest, " ")
	number, err := strconv.Atoi(version)
	switch {
	case err != nil || number < 1:
		err = fmt.Errorf("its version is %.20q", version)
	case number > 1:
		err = fmt.Errorf("its version is %d, and this program reads version 1 in this form", number)
		return nil, &state.Damage{Kind: "newer-" + version, Err: err}
	case fmt.Sprintf("%08x", crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))) != sum:
		err = fmt.Errorf("its checksum does not match")
	default:
		err = json.Unmarshal(body, &all)
	}
	if err != nil {
		return nil, &state.Damage{Kind: "corrupt", Err: err}
	}
	return all, nil
}

// Forget removes drives from the history at path and returns them: those with an ID, a serial number or a device. If
// several drives had the device, the drive that has it now stays.
func Forget(path, which string) (forgotten []sample.Drive, err error) {
	var unknown error
	_, err = newFile(path, nil).Update(func(all *records) error {
		var list []*Record
		if list, unknown = all.find(which); unknown != nil {
			unknown = fmt.Errorf("%w in %s", unknown, path)
			return unknown
		}
		for _, r := range list {
			forgotten = append(forgotten, r.Drive)
			delete(*all, r.Drive.ID)
		}
		return nil
	})
	if err != nil && unknown == nil {
		return nil, fmt.Errorf("the history of drives in %s cannot be used: %w", path, err)
	}
	return forgotten, err
}

// find returns the records of drives with an ID, a serial number or a device.
func (all records) find(which string) ([]*Record, error) {
	var named, atDevice []*Record
	var newest time.Time
	for id, r := range all {
		switch {
		case id == which || r.Drive.Serial == which:
			named = append(named, r)
		case r.Drive.Device == strings.TrimPrefix(which, "/dev/"):
			atDevice = append(atDevice, r)
			if r.Seen.After(newest) {
				newest = r.Seen
			}
		}
	}
	if n := len(atDevice); len(named) == 0 && n > 0 {
		named = slices.DeleteFunc(atDevice, func(r *Record) bool { return n > 1 && r.Seen.Equal(newest) })
		if len(named) == 0 {
			return nil, fmt.Errorf("%d drives are at %s: give the serial number of one", n, which)
		}
	}
	if len(named) == 0 {
		return nil, fmt.Errorf("there is no drive %q", which)
	}
	return named, nil
}
