package emit

import "testing"

func TestCheckMetric(t *testing.T) {
	for name, want := range map[string]string{
		"system.disk.io":  "",
		"system.disk.ios": `there is no metric "system.disk.ios": stallspan docs metrics lists them`,
		"z":               `there is no metric "z": stallspan docs metrics lists them`,
		"":                `there is no metric "": stallspan docs metrics lists them`,
	} {
		got := ""
		if err := CheckMetric(name); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("CheckMetric(%q): got %q, want %q", name, got, want)
		}
	}
}
