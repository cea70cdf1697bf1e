package gpu

import "github.com/stallspan/stallspan/internal/sample"

// gauges asks for what each row holds beside utilisation.
func (a *asked) gauges(w wants, r *reading) {
	g := &r.gauges
	a.ask(askMemory, r, func() error {
		m, err := a.memory()
		if err == nil && r.possible("memory", m.total > 0 && m.total < mostMemory && m.used <= m.total) {
			g.MemoryUsed, g.MemoryTotal, g.Has = m.used, m.total, g.Has|sample.HasMemory
		}
		a.drop(sample.GPUMemoryReserved)
		if err == nil && m.hasReserved {
			a.keep(sample.GPUMemoryReserved, float64(m.reserved), r)
		}
		return err
	})
	a.ask(askTemperature, r, func() error {
		value, err := a.temperature()
		if err == nil && r.possible("temperature", value >= coldest && value <= hottest) {
			g.Temperature, g.Has = value, g.Has|sample.HasTemperature
		}
		return err
	})
	if g.Has&sample.HasEnergy == 0 && !a.batch.tells(energyCounter) {
		a.ask(askEnergy, r, func() error {
			value, err := a.energy()
			if err == nil && r.possible("energy", value >= 0 && value <= mostEnergy) {
				g.Energy, g.Has = value, g.Has|sample.HasEnergy
			}
			return err
		})
	}
	if w.power || g.Has&sample.HasEnergy == 0 {
		a.ask(askPower, r, func() error {
			value, err := a.power()
			if err == nil && r.possible("power", value >= 0 && value <= mostPower) {
				g.Power, g.Has = value, g.Has|sample.HasPower
			}
			return err
		})
	}
	a.ask(askLink, r, func() error {
		width, generation, err := a.link()
		if err == nil && r.possible("PCIe link", possibleLink(width, generation)) {
			g.LinkWidth, g.LinkGeneration, g.Has = width, generation, g.Has|sample.HasLink
		}
		return err
	})
}

// limits asks for what does not change, and for errors to be told as events.
func (a *asked) limits(r *reading) {
	a.ask(askLinkMax, r, func() error {
		width, generation, err := a.linkMax()
		if err == nil && r.possible("PCIe link", possibleLink(width, generation)) {
			r.gauges.LinkWidthMax, r.gauges.LinkGenerationMax = width, generation
			r.gauges.Has |= sample.HasLinkMax
		}
		return err
	})
	a.ask(askXIDs, r, a.watch)
}
