#!/usr/bin/env bash
# Starts a Kubernetes cluster of one node on this machine, and runs the tests of lab/cluster in it: the Helm chart with
# real pods. Its programs are built once, from the module of the version below, and kept in $CLUSTER_CACHE. It needs
# root, and containerd, runc, containernetworking-plugins, dnsmasq-base, iptables and conntrack of Debian. The cluster has
# a network of its own, and all its files are in build/cluster.
#
#   hack/cluster.sh [--keep] [ARGUMENT OF go test...]     --keep: leave the cluster up until ^C
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# In mounts of its own: they end with the cluster. Containers may mount only what is shared, as systemd makes it.
if [[ ${CLUSTER_MOUNTS:-} != own ]] && ((EUID == 0)); then
	# shellcheck disable=SC2016 # the inner shell expands them
	CLUSTER_MOUNTS=own exec unshare --mount --propagation private \
		sh -c 'mount --make-rshared / && exec "$0" "$@"' hack/cluster.sh "$@"
fi
keep=
if [[ ${1:-} == --keep ]]; then
	keep=yes
	shift
fi
if ((EUID != 0)); then
	echo 'no cluster: this needs root' >&2
	exit 1
fi
for program in containerd runc ctr dnsmasq iptables conntrack /usr/lib/cni/ptp; do
	command -v "$program" >/dev/null && continue
	echo "no cluster: $program is missing: apt-get install containerd runc containernetworking-plugins dnsmasq-base" \
		'iptables conntrack' >&2
	exit 1
done

version=v1.34.4 # of Kubernetes
bin=${CLUSTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/stallspan-cluster}/$version
mkdir -p "$bin"
IFS=. read -r major minor _ <<<"${version#v}"
# Kubernetes keeps the parts of itself in folders that its module does not contain. They are modules, too: v1.34.4 has
# them as v0.34.4.
modules() {
	source=$(go mod download -json k8s.io/kubernetes@"$version" | sed -n 's/.*"Dir": "\(.*\)",/\1/p')
	sed -E "s|=> \./staging/src/(.*)|=> \1 v0.${version#v*.}|" "$source/go.mod" >"$bin/kubernetes.mod"
	cp "$source/go.sum" "$bin/kubernetes.sum"
}
source=
build() { # NAME PACKAGE
	[[ -x $bin/$1 ]] && return
	[[ $source ]] || modules
	echo "building $1 $version"
	local p=k8s.io/component-base/version
	CGO_ENABLED=0 GOWORK=off go build -C "$source" -mod=mod -modfile="$bin/kubernetes.mod" -o "$bin/$1" \
		-ldflags "-s -w -X $p.gitVersion=$version -X $p.gitMajor=$major -X $p.gitMinor=$minor" "$2"
}
for name in kubelet kube-apiserver kube-scheduler kube-controller-manager kube-proxy kubectl; do
	build $name k8s.io/kubernetes/cmd/$name
done
build etcd go.etcd.io/etcd/server/v3

dir=$PWD/build/cluster
node=10.99.0.1 # the node's address
net=stallspan-cluster
running=()

# Everything that runs in the cluster's network. `ip netns exec` would hide the cgroups.
inside() { nsenter --net=/run/netns/$net -- "$@"; }
start() { # NAME COMMAND...
	local name=$1
	shift
	setsid nsenter --net=/run/netns/$net -- "$@" >"$dir/$name.log" 2>&1 & # ^C is for this script alone
	running+=($!)
}
until_true() { # WHAT COMMAND...
	local what=$1 i
	shift
	for ((i = 0; i < 240; i++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.5
	done
	echo "cluster: not within two minutes: $what; see $dir/*.log" >&2
	exit 1
}

down() {
	local status=$? i
	set +e
	trap - EXIT
	if [[ -S $dir/containerd.sock ]]; then
		# Without the kubelet nobody starts them again.
		[[ -n ${kubelet:-} ]] && kill "$kubelet" 2>/dev/null && wait "$kubelet" 2>/dev/null
		c() { timeout -k 1 10 ctr --address "$dir/containerd.sock" --namespace k8s.io "$@"; }
		for i in $(c tasks ls -q); do c tasks kill --signal KILL "$i"; done >/dev/null 2>&1
		sleep 1
		for i in $(c tasks ls -q); do c tasks rm --force "$i"; done >/dev/null 2>&1
		for i in $(c containers ls -q); do c containers rm "$i"; done >/dev/null 2>&1
	fi
	kill -KILL "${running[@]}" 2>/dev/null # nothing of it is kept
	wait "${running[@]}" 2>/dev/null
	awk -v d="$dir/" 'index($2, d) == 1 {print $2}' /proc/mounts | sort -r | xargs -r umount -l
	find /run/netns -name 'cni-*' -newer "$dir/started" -exec sh -c 'umount "$1"; rm -f "$1"' _ {} \; 2>/dev/null
	find /sys/fs/cgroup -depth -type d -path '*/kubepods*' -exec rmdir {} \; 2>/dev/null
	ip netns del $net
	return "$status"
}

if [[ -e /run/netns/$net ]]; then
	echo "cluster: another one is up, or was killed: ip netns del $net, then try again" >&2
	exit 1
fi
rm -rf "$dir"
mkdir -p "$dir"/{cni,hosts,pki,socket}
touch "$dir/started"
trap down EXIT
trap 'exit 130' INT TERM
ip netns add $net
inside ip link set lo up
inside ip link add node type veth peer name other # some kernels have no dummy devices
inside ip addr add $node/24 dev node
inside ip link set node up
inside ip link set other up
inside ip route add default via 10.99.0.2
inside sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'

# etcd, and the API.
openssl genrsa -out "$dir/pki/accounts.key" 2048 2>/dev/null
admin=$(openssl rand -hex 16) kubelet_token=$(openssl rand -hex 16)
(umask 077 && cat >"$dir/pki/tokens.csv" <<END
$admin,admin,admin,system:masters
$kubelet_token,system:node:node-1,node-1,system:nodes
END
)
kubeconfig() { # FILE TOKEN
	(umask 077 && cat >"$1" <<END
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://$node:6443", certificate-authority: $dir/pki/apiserver.crt}}]
users: [{name: u, user: {token: "$2"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
END
	)
}
kubeconfig "$dir/admin.conf" "$admin"
kubeconfig "$dir/kubelet.conf" "$kubelet_token"
start etcd "$bin/etcd" --data-dir "$dir/etcd" --unsafe-no-fsync --listen-client-urls http://127.0.0.1:2379 \
	--advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380
start apiserver "$bin/kube-apiserver" --etcd-servers http://127.0.0.1:2379 --secure-port 6443 --bind-address $node \
	--advertise-address $node --cert-dir "$dir/pki" --service-cluster-ip-range 10.97.0.0/24 \
	--authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction --allow-privileged \
	--kubelet-preferred-address-types InternalIP --token-auth-file "$dir/pki/tokens.csv" --service-account-issuer https://kubernetes.default.svc \
	--service-account-signing-key-file "$dir/pki/accounts.key" --service-account-key-file "$dir/pki/accounts.key"
export KUBECONFIG=$dir/admin.conf
kubectl() { inside "$bin/kubectl" "$@"; }
until_true 'the API answers' kubectl get --raw /readyz
start controllers "$bin/kube-controller-manager" --kubeconfig "$KUBECONFIG" --root-ca-file "$dir/pki/apiserver.crt" \
	--service-account-private-key-file "$dir/pki/accounts.key" --use-service-account-credentials \
	--leader-elect=false --node-monitor-grace-period 10m # on a busy machine
start scheduler "$bin/kube-scheduler" --kubeconfig "$KUBECONFIG" --leader-elect=false

# containerd, with a runtime that mounts the stand-in for NVIDIA's library, as their toolkit mounts the real one.
cat >"$dir/nvidia-runtime" <<END
#!/bin/sh
case " \$* " in *" create "*) $PWD/lab/cluster/nvidia.py "$PWD/build/fakenvml/libnvidia-ml.so.1" "\$@" || exit 1 ;; esac
exec runc "\$@"
END
chmod 755 "$dir/nvidia-runtime"
cat >"$dir/containerd.toml" <<END
version = 2
root = "$dir/containerd"
state = "$dir/containerd-state"
[grpc]
  address = "$dir/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true # where root lacks CAP_SYS_RESOURCE
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$dir/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
      BinaryName = "$dir/nvidia-runtime"
END
# Pods are routed, and not on a bridge: so answers pass the rules of Services, too.
cat >"$dir/cni/ptp.conflist" <<END
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipam":
  {"type": "host-local", "dataDir": "$dir/ipam", "ranges": [[{"subnet": "10.98.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
END
start containerd containerd --config "$dir/containerd.toml"
until_true 'containerd answers' ctr --address "$dir/containerd.sock" version
lab/cluster/image.sh pause "$dir/pause.tar"
lab/cluster/image.sh work "$dir/work.tar"
for image in "$dir"/{pause,work}.tar build/image/{stallspan,otelcol-stallspan}."$(go env GOARCH)".docker.tar; do
	ctr --address "$dir/containerd.sock" --namespace k8s.io images import "$image" >/dev/null
done

cat >"$dir/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://$dir/containerd.sock
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
address: $node
clusterDNS: [$node]
clusterDomain: cluster.local
resolvConf: ""
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi}
podLogsDir: $dir/pod-logs
protectKernelDefaults: false
END
start kubelet "$bin/kubelet" --config "$dir/kubelet.yaml" --kubeconfig "$dir/kubelet.conf" --root-dir "$dir/kubelet" \
	--hostname-override node-1 --node-ip $node --cert-dir "$dir/kubelet-pki"
kubelet=$!
start proxy "$bin/kube-proxy" --kubeconfig "$KUBECONFIG" --hostname-override node-1 --proxy-mode iptables \
	--conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0 --conntrack-tcp-timeout-close-wait 0 \
	--cluster-cidr 10.98.0.0/24
# Names of Services: the tests write them to hosts.
start dns dnsmasq --keep-in-foreground --conf-file=/dev/null --no-resolv --no-hosts --local=/#/ --hostsdir="$dir/hosts" \
	--listen-address=$node --bind-interfaces --user=root --pid-file= --log-queries --log-facility=-
until_true 'the node is ready' kubectl wait --for=condition=Ready node/node-1 --timeout=1s
kubectl apply -f - >/dev/null <<END
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: nvidia}
handler: nvidia
END
echo "the cluster is up: $(kubectl get node node-1 -o 'jsonpath={.status.nodeInfo.kubeletVersion} {.status.nodeInfo.containerRuntimeVersion}')"

HELM=$(go -C tools tool -n helm)
STALLSPAN_VERSION=$(hack/version.sh | cut -d ' ' -f 1)
export HELM STALLSPAN_VERSION STALLSPAN_CLUSTER=$dir STALLSPAN_NODE_ADDRESS=$node PATH=$bin:$PATH
if [[ -n $keep ]]; then
	echo "KUBECONFIG=$KUBECONFIG nsenter --target ${running[0]} --mount --net -- $bin/kubectl get pods -A" >&2
	sleep infinity &
	running+=($!)
	wait $!
fi
inside go -C lab test -count 1 -v -timeout 15m "$@" ./cluster
