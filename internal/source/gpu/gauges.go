package gpu

import "github.com/stallspan/stallspan/internal/sample"

// readGauges reads the gauges of a row.
func (d *deviceReader) readGauges(w request, r *reading) {
	g := &r.gauges
	if d.initialized {
		d.readMemoryUse(r)
	}
	d.do(queryTemperature, r, func() error {
		value, err := d.temperature()
		if err == nil && r.valid("temperature", value >= minTemperature && value <= maxTemperature) {
			g.Temperature, g.Has = value, g.Has|sample.HasTemperature
		}
		return err
	})
	d.readPower(w, r)
	d.do(queryLink, r, func() error {
		width, generation, err := d.pcieLink()
		if err == nil && r.valid("PCIe link", validLink(width, generation)) {
			g.LinkWidth, g.LinkGeneration, g.Has = width, generation, g.Has|sample.HasLink
		}
		return err
	})
}

// readPower reads power and the counter of energy, and which of them is needed in the next reading.
func (d *deviceReader) readPower(w request, r *reading) {
	g := &r.gauges
	energyDue := d.energyDue()
	if energyDue && g.Has&sample.HasEnergy == 0 && !d.batch.provides(energyCounter) {
		d.do(queryEnergy, r, func() error {
			value, err := d.energy()
			if err == nil && r.valid("energy", value >= 0 && value <= maxEnergy) {
				g.Energy, g.Has = value, g.Has|sample.HasEnergy
			}
			return err
		})
	}
	if w.power || d.averagesPower || g.Has&sample.HasEnergy == 0 {
		d.do(queryPower, r, func() error {
			value, err := d.power()
			if err == nil && r.valid("power", value >= 0 && value <= maxPower) {
				g.Power, g.Has = value, g.Has|sample.HasPower
			}
			return err
		})
	}
	r.meanPower = d.averagesPower && g.Has&sample.HasPower != 0
	r.energySpared = !energyDue
	d.sparesEnergy = r.meanPower && (r.energySpared || g.Has&sample.HasEnergy != 0)
}

// energyDue reports whether the counter of energy is read now: in each tenth reading if the newest one had the mean of
// power, else in each.
func (d *deviceReader) energyDue() bool { return !d.sparesEnergy || d.hasTurn(energyTurn) }

// readLimits reads constants, and registers for XID events.
func (d *deviceReader) readLimits(r *reading) {
	d.do(queryMaxLink, r, func() error {
		width, generation, err := d.maxPCIeLink()
		if err == nil && r.valid("PCIe link", validLink(width, generation)) {
			r.gauges.LinkWidthMax, r.gauges.LinkGenerationMax = width, generation
			r.gauges.Has |= sample.HasLinkMax
		}
		return err
	})
	d.do(queryXIDs, r, d.registerEvents)
}
