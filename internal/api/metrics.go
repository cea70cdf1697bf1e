package api

import "net/http"

// Scraped are the metrics for Prometheus.
type Scraped struct {
	All     http.Handler // with the histograms of windows, whose labels are texts of their users
	Machine http.Handler // without them
}

// Scraping makes the server serve GET /metrics. Call it before Serve.
func (s *Server) Scraping(m Scraped) *Server {
	s.metrics = m
	return s
}

// scrape serves the metrics: all to root and the server's user, and those of the machine to others.
func (s *Server) scrape(w http.ResponseWriter, r *http.Request) error {
	who := peerOfRequest(r.Context())
	metrics := s.metrics.Machine
	if who.privileged() {
		metrics = s.metrics.All
	}
	if metrics == nil {
		return refuse(http.StatusNotFound, "this server has no metrics for Prometheus: use stallspan agent, or the "+
			"Collector's prometheus exporter")
	}
	release, err := s.acquire(who.name)
	if err != nil {
		return err
	}
	defer release()
	metrics.ServeHTTP(w, r)
	return nil
}
