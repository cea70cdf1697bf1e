package export

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"
)

// maxCertificates bounds a file of certificates; the largest bundles of authorities have a quarter of a megabyte.
const maxCertificates = 4 << 20

// certificates reads what the environment says about TLS; nil when it says nothing. The gRPC exporters read the same
// files once more by themselves; there it only proves that they can be read.
func (s signal) certificates() (*tls.Config, error) {
	var found *tls.Config
	config := func() *tls.Config {
		if found == nil {
			found = &tls.Config{}
		}
		return found
	}
	err := s.each("CERTIFICATE", func(variable, path string) error {
		text, err := readCertificates(variable, path)
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return fmt.Errorf("%s: %s holds no certificate in PEM format", variable, path)
		}
		config().RootCAs = pool
		return nil
	})
	if err != nil {
		return nil, err
	}
	keys := s.variables("CLIENT_KEY")
	for i, variable := range s.variables("CLIENT_CERTIFICATE") {
		path, key := lookup(variable), lookup(keys[i])
		switch {
		case path == "" && key == "":
			continue
		case path == "":
			return nil, fmt.Errorf("%s is set: set %s too", keys[i], variable)
		case key == "":
			return nil, fmt.Errorf("%s is set: set %s too", variable, keys[i])
		}
		pair, err := readPair(variable, path, keys[i], key)
		if err != nil {
			return nil, err
		}
		config().Certificates = []tls.Certificate{pair}
	}
	return found, nil
}

func readPair(variable, path, keyVariable, keyPath string) (tls.Certificate, error) {
	text, err := readCertificates(variable, path)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := readCertificates(keyVariable, keyPath)
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(text, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%s and %s do not go together: %w", variable, keyVariable, err)
	}
	return pair, nil
}

func readCertificates(variable, path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxCertificates+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	if len(text) > maxCertificates {
		return nil, fmt.Errorf("%s: %s is larger than %d MiB: name a file of certificates", variable, path, maxCertificates>>20)
	}
	return text, nil
}
