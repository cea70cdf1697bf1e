package disk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

func TestKind(t *testing.T) {
	root := t.TempDir()
	for name, files := range map[string]map[string]string{
		"sda": {"queue/rotational": "1\n", "device/vendor": "ATA     \n"}, "sdb": {"queue/rotational": "0\n", "device/vendor": "ATA     \n"},
		"sdc": {"queue/rotational": "1\n", "device/vendor": "QEMU    \n"}, "vda": {"queue/rotational": "1\n"}, "mmcblk0": {"queue/rotational": "0\n"},
	} {
		for file, text := range files {
			path := filepath.Join(root, "sys/class/block", name, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := &Source{root: root, sys: sysfs{root}}
	for want, p := range map[string]Placement{
		"rotational": {Disks: []string{"sda"}}, "ssd": {Disks: []string{"sdb", "mmcblk0"}}, "virtual": {Disks: []string{"sdc", "vda"}},
		"nvme+ssd": {Disks: []string{"sdb", "nvme0n1"}, Devices: []string{"dm-0"}}, "unknown": {Disks: []string{"sdz"}},
		"loop":   {Disks: []string{"sda"}, Devices: []string{"loop3", "sda1"}},
		"memory": {Mount: sample.Mount{Type: "tmpfs"}}, "nfs4": {Mount: sample.Mount{Type: "nfs4"}},
	} {
		if got := s.Kind(p); got != want {
			t.Errorf("%+v: got %s, want %s", p, got, want)
		}
	}
	for _, p := range []Placement{{}, {Mount: sample.Mount{Type: "ext4"}, Devices: []string{"dm-0"}}} {
		if got := s.Kind(p); got != NoKind {
			t.Errorf("%+v: got %s, want none", p, got)
		}
	}
}

// Paths of one machine have different kinds.
func TestKindOfPaths(t *testing.T) {
	for path, want := range map[string]string{"/": NVMe, "/dev/shm": Memory, "/snap/core22/1380": Loop} {
		s := source(t, fixture.Root(t, "disk_laptop"))
		p, err := s.Under(path)
		if got := s.Kind(p); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", path, got, err, want)
		}
	}
}

// Volumes that a network attaches have the names of local disks.
func TestRemote(t *testing.T) {
	root := t.TempDir()
	put := func(name, text string) { fixture.Write(t, root, "sys/"+name, []byte(text+"\n")) }
	link := func(target, name string) {
		name = filepath.Join(root, "sys", name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{}
	nvme := func(name, kind, model, transport string) {
		want[name] = kind
		put("class/block/"+name+"/device/model", model+"   ")
		put("class/block/"+name+"/device/transport", transport)
	}
	nvme("nvme1n1", Remote, "Amazon Elastic Block Store", "pcie")
	nvme("nvme2n1", NVMe, "Amazon EC2 NVMe Instance Storage", "pcie")
	nvme("nvme3n1", Remote, "nvme_card-pd", "pcie")
	nvme("nvme4n1", NVMe, "nvme_card0", "pcie")
	nvme("nvme5n1", Remote, "MSFT NVMe Accelerator v1.0", "pcie")
	nvme("nvme6n1", NVMe, "Microsoft NVMe Direct Disk", "pcie")
	nvme("nvme7n1", Remote, "SPDK bdev Controller", "tcp")
	want["nvme8n1"] = Remote // with several paths, whose device is the subsystem
	put("class/block/nvme8n1/device/model", "Linux")
	put("class/block/nvme8n1/device/nvme9/transport", "rdma")
	scsi := func(name, kind, host, class, vendor, model string) {
		want[name] = kind
		device := "devices/pci0000:00/" + host + "/session1/target1:0:0/1:0:0:0/" + name
		put(device+"/vendor", vendor)
		put(device+"/model", model)
		put("class/block/"+name+"/queue/rotational", "0")
		link("../../../"+device, "class/block/"+name+"/device")
		put("class/"+class+"/"+host+"/x", "")
	}
	scsi("sda", Remote, "host1", "iscsi_host", "LIO-ORG", "block1")
	scsi("sdb", Remote, "host2", "fc_host", "PURE", "FlashArray")
	scsi("sdc", SSD, "host3", "sas_host", "ATA", "INTEL SSD")
	scsi("sdd", Remote, "host4", "spi_host", "Msft    ", "Virtual Disk    ")
	scsi("sde", Remote, "host5", "spi_host", "Google  ", "PersistentDisk  ")
	scsi("sdf", SSD, "host6", "spi_host", "Google  ", "EphemeralDisk   ")
	scsi("sdg", Remote, "host7", "spi_host", "SYNOLOGY", "iSCSI Storage")
	scsi("sdh", Remote, "host8", "spi_host", "Linode  ", "Volume          ")
	scsi("sdi", Virtual, "host9", "spi_host", "QEMU    ", "QEMU HARDDISK   ")
	scsi("sdj", Remote, "host10", "spi_host", "QEMU    ", "QEMU HARDDISK   ")
	put("class/block/sdi/queue/rotational", "1")
	put("class/block/sdi/device/vpd_pg80", "\x00\x80\x00\x0ddrive-scsi0-0")
	put("class/block/sdj/device/vpd_pg80", "\x00\x80\x00\x240f6f7a4c-9f0b-4d5e-9c11-0123456789ab")
	for _, name := range []string{"rbd0", "nbd12", "rnbd0", "etherd/e0.1"} {
		want[name] = Remote
	}
	want["vda"], want["vdb"], want["xvdf"] = Remote, Virtual, Virtual
	put("class/block/vda/serial", "0f6f7a4c-9f0b-4d5e-9")
	put("class/block/vdb/serial", "disk-1")
	s := &Source{root: root, sys: sysfs{root}}
	for name, kind := range want {
		if got := s.KindOf(name); got != kind {
			t.Errorf("%s: got %s, want %s", name, got, kind)
		}
	}
}
