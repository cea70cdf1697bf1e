package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/stallspan/stallspan/internal/alert/action"
)

// maxSecret is the limit of a secret, in bytes.
const maxSecret = 4 << 10

// readSecret sets the secret of a webhook from the file or the environment variable that the config names.
func readSecret(w *action.Webhook) (err error) {
	switch {
	case w.SecretFile != "" && w.SecretEnv != "":
		return errors.New("the secret is given twice: keep one of secret_file and secret_env")
	case w.SecretFile != "":
		w.Secret, err = secretFromFile(w.SecretFile)
	case w.SecretEnv != "":
		w.Secret = []byte(os.Getenv(w.SecretEnv))
		if len(w.Secret) == 0 {
			return fmt.Errorf("the environment variable %.60q of secret_env is not set", w.SecretEnv)
		}
	}
	return err
}

func secretFromFile(path string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		return nil, errors.New("secret_file needs an absolute path")
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // opening a pipe would block
		return nil, fmt.Errorf("secret_file %s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the secret: %w", err)
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("secret_file %s is open to all users: run chmod o= on it", path)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the secret: %w", err)
	}
	if len(text) > maxSecret {
		return nil, fmt.Errorf("secret_file %s is larger than %d KiB: is it the right file?", path, maxSecret>>10)
	}
	return bytes.TrimRight(text, "\r\n"), nil
}
