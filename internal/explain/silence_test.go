package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

func TestSilence(t *testing.T) {
	mount := &window.MountUse{Mount: sample.Mount{Point: "/data", Type: "nfs4", Source: "server:/export"}}
	at := time.Date(2026, 3, 2, 14, 2, 0, 0, time.UTC)
	for _, c := range []struct {
		silence      window.Silence
		want, remedy string
	}{
		{window.Silence{Peer: &window.PeerUse{Address: "10.0.0.7:443", Connections: 8}, Since: -21 * time.Second,
			Until: 10 * time.Second, Goes: true, Came: 282 << 20},
			"Nothing has come from 10.0.0.7:443 for 31.0 s, since 14:01:39; 282 MiB came before; 8 connections still open. ",
			"timeout"},
		{window.Silence{Mount: mount, Since: 2 * time.Second, Until: 6 * time.Second, Came: 5 << 20},
			"Nothing came from the file system server:/export at /data (nfs4) for 4.0 s, since 14:02:02; 5 MiB came before. ",
			"server or daemon"},
		{window.Silence{Disk: "sda", Since: 2 * time.Second, Until: 10 * time.Second, Goes: true},
			"Nothing has come from disk sda for 8.0 s, since 14:02:02. ", "dmesg"},
		{window.Silence{Ended: []sample.Ended{{PID: 7}, {PID: 9, At: time.Second, Status: 9}}, Until: 10 * time.Second,
			Goes: true}, "Nothing has come from its own processes for 10.0 s, since 14:02:00; 2 of them ended " +
			"by SIGKILL at 14:02:01. ", "killed process 9"},
		{window.Silence{Ended: []sample.Ended{{PID: 9, Status: 3 << 8}}, Until: 10 * time.Second},
			"Nothing came from its own processes for 10.0 s, since 14:02:00; 1 of them ended with exit code 3 " +
				"before. ", "timeout"},
		{window.Silence{Ended: []sample.Ended{{PID: 9, At: time.Second, Status: 0x137f}}, Until: 10 * time.Second},
			"Nothing came from its own processes for 10.0 s, since 14:02:00; 1 of them stopped by SIGSTOP at " +
				"14:02:01. ", "kill -CONT 9"},
	} {
		r := &window.Report{Judgement: window.Judgement{Verdict: window.StorageBound}}
		divide(r, window.Shares{Storage: 1})
		r.Start.Wall, r.Silence = at, &c.silence
		if got := Finding(r); !strings.HasPrefix(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
		got := Remedy(r)
		if !strings.Contains(got, c.remedy) || strings.Contains(got, "faster") || strings.Contains(got, "workers") {
			t.Errorf("got the remedy %q", got)
		}
	}
}
