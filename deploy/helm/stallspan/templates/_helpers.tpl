{{- define "stallspan.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 55 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 55 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "stallspan.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "stallspan.labels" -}}
{{ include "stallspan.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "stallspan.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "stallspan.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name: name an existing one, or set serviceAccount.create" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- /* image takes the root and an entry of images. */ -}}
{{- define "stallspan.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ default .root.Chart.AppVersion .image.tag }}
{{- end -}}
{{- end -}}

{{- define "stallspan.endpoint" -}}
{{- required "export.endpoint: give host:port of a backend that takes OTLP over gRPC" .Values.export.endpoint -}}
{{- end -}}

{{- /* confined is the security context of a container that needs no right. */ -}}
{{- define "stallspan.confined" -}}
runAsUser: 65532
runAsGroup: 65532
runAsNonRoot: true
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- /* exporter is the Collector's exporter to the backend. */ -}}
{{- define "stallspan.exporter" -}}
endpoint: {{ include "stallspan.endpoint" . | quote }}
tls:
  insecure: {{ .Values.export.insecure }}
  {{- if .Values.export.tlsSecret }}
  ca_file: /etc/stallspan/backend/ca.crt
  {{- if .Values.export.clientCertificate }}
  cert_file: /etc/stallspan/backend/tls.crt
  key_file: /etc/stallspan/backend/tls.key
  {{- end }}
  {{- end }}
{{- if .Values.export.authorization.secret }}
headers:
  authorization: ${env:EXPORT_AUTHORIZATION}
{{- end }}
{{- end -}}

{{- /* toGateway is the nodes' exporter to the gateway. */ -}}
{{- define "stallspan.toGateway" -}}
endpoint: {{ printf "%s-gateway.%s:4317" (include "stallspan.fullname" .) .Release.Namespace }}
tls:
  insecure: {{ empty .Values.gateway.tlsSecret }}
  {{- if .Values.gateway.tlsSecret }}
  ca_file: /etc/stallspan/gateway/ca.crt
  {{- end }}
{{- end -}}

{{- define "stallspan.exportEnv" -}}
{{- if .Values.export.authorization.secret }}
- name: EXPORT_AUTHORIZATION
  valueFrom:
    secretKeyRef:
      name: {{ .Values.export.authorization.secret }}
      key: {{ .Values.export.authorization.key }}
{{- end }}
{{- end -}}

{{- define "stallspan.exportMounts" -}}
{{- if .Values.export.tlsSecret }}
- name: backend
  mountPath: /etc/stallspan/backend
  readOnly: true
{{- end }}
{{- end -}}

{{- define "stallspan.exportVolumes" -}}
{{- if .Values.export.tlsSecret }}
- name: backend
  secret:
    secretName: {{ .Values.export.tlsSecret }}
    defaultMode: 0444 # for a user without root
{{- end }}
{{- end -}}

{{- define "stallspan.nodeCollectorConfig" -}}
{{- $config := .Files.Get "files/node.yaml" | fromYaml -}}
{{- $exporter := ternary (include "stallspan.toGateway" .) (include "stallspan.exporter" .) .Values.gateway.enabled -}}
{{- $_ := set $config.exporters "otlp_grpc/gateway" (fromYaml $exporter) -}}
{{- if .Values.prometheus.scrape -}}
{{- $prometheus := dict "endpoint" "${env:POD_IP}:8889" "resource_constant_labels" (dict "included" (list "*")) -}}
{{- $_ := set $config.exporters "prometheus" $prometheus -}}
{{- $_ := set $config.service.pipelines.metrics "exporters" (append $config.service.pipelines.metrics.exporters "prometheus") -}}
{{- end -}}
{{- if .Values.node.state.hostPath -}}
{{- $slow := dict "baseline" "/var/lib/stallspan/baselines.json" -}}
{{- $_ := set $config.receivers.stallspan "slow" $slow -}}
{{- $_ := set $config.processors.stallspan "slow" $slow -}}
{{- end -}}
{{- $_ := set $config.receivers.stallspan "socket" (include "stallspan.socketPath" .) -}}
{{- mustMergeOverwrite $config (deepCopy .Values.node.collectorConfig) | toYaml -}}
{{- end -}}

{{- define "stallspan.agentConfig" -}}
{{- $config := dict "socket" (include "stallspan.socketPath" .) "sampling" (dict "root_path" "/hostfs") "smart" (dict "enabled" false) -}}
{{- if include "stallspan.webConfig" . -}}
{{- $_ := set $config "prometheus" (dict "endpoint" "0.0.0.0:9464" "web_config" "/etc/stallspan/web/web.yaml") -}}
{{- end -}}
{{- mustMergeOverwrite $config (deepCopy .Values.node.agentConfig) | toYaml -}}
{{- end -}}

{{- /* webConfig is the Secret with the users of the agents' port for Prometheus. Without that port it is empty. */ -}}
{{- define "stallspan.webConfig" -}}
{{- if eq .Values.mode "collector" -}}
{{- if .Values.prometheus.webConfigSecret -}}
{{- fail "prometheus.webConfigSecret: only agents ask Prometheus who it is: set mode agent, or remove it" -}}
{{- end -}}
{{- else if .Values.prometheus.scrape -}}
{{- required "prometheus.webConfigSecret: name a Secret with web.yaml, which asks Prometheus for a password or a certificate" .Values.prometheus.webConfigSecret -}}
{{- end -}}
{{- end -}}

{{- /* resource has the attributes of what is sent. A Collector gives them to spans of other pods, too, so they do not name
its own pod. Kubernetes replaces the variables. */ -}}
{{- define "stallspan.resource" -}}
k8s.node.name=$(K8S_NODE_NAME)
{{- if eq .Values.mode "agent" }},k8s.namespace.name=$(K8S_NAMESPACE_NAME),k8s.pod.name=$(K8S_POD_NAME),k8s.pod.uid=$(K8S_POD_UID){{ end }}
{{- with .Values.clusterName }},k8s.cluster.name={{ . }}{{ end }}
{{- end -}}

{{- /* socket is empty where pods cannot reach the socket: only root may make it on the node. */ -}}
{{- define "stallspan.socket" -}}
{{- if and .Values.node.socket.enabled .Values.node.readOtherUsers -}}true{{- end -}}
{{- end -}}

{{- /* podResources is empty where the pod is not root, which alone may connect to the kubelet. */ -}}
{{- define "stallspan.podResources" -}}
{{- if and .Values.node.podResources.enabled .Values.node.readOtherUsers -}}true{{- end -}}
{{- end -}}

{{- define "stallspan.socketPath" -}}
{{ if include "stallspan.socket" . }}/run/stallspan/root{{ else }}/tmp/stallspan{{ end }}/stallspan.sock
{{- end -}}

{{- define "stallspan.gatewayConfig" -}}
{{- $config := .Files.Get "files/gateway.yaml" | fromYaml -}}
{{- $_ := mustMergeOverwrite (index $config.exporters "otlp_grpc/backend") (include "stallspan.exporter" . | fromYaml) -}}
{{- if .Values.gateway.tlsSecret -}}
{{- $tls := dict "cert_file" "/etc/stallspan/gateway/tls.crt" "key_file" "/etc/stallspan/gateway/tls.key" -}}
{{- $_ := set $config.receivers.otlp.protocols.grpc "tls" $tls -}}
{{- $_ := set (index $config.receivers "otlp/peers").protocols.grpc "tls" $tls -}}
{{- /* Peers have addresses without names. */ -}}
{{- $peer := dict "ca_file" "/etc/stallspan/gateway/ca.crt" "server_name_override" (printf "%s-gateway.%s" (include "stallspan.fullname" .) .Release.Namespace) -}}
{{- $_ := set $config.exporters.load_balancing.protocol.otlp "tls" $peer -}}
{{- end -}}
{{- if .Values.gateway.sampling.enabled -}}
{{- $_ := set $config.exporters.load_balancing.resolver.dns "hostname" (printf "%s-gateway-peers.%s" (include "stallspan.fullname" .) .Release.Namespace) -}}
{{- range $config.processors.tail_sampling.policies -}}
{{- if .probabilistic -}}
{{- $_ := set .probabilistic "sampling_percentage" $.Values.gateway.sampling.percentage -}}
{{- end -}}
{{- end -}}
{{- else -}}
{{- $_ := set $config.service.pipelines.traces "exporters" (list "otlp_grpc/backend") -}}
{{- $_ := unset $config "connectors" -}}
{{- $_ := unset $config.exporters "load_balancing" -}}
{{- $_ := unset $config.processors "tail_sampling" -}}
{{- $_ := unset $config.receivers "otlp/peers" -}}
{{- range list "traces/whole" "traces/counted" "metrics/spans" -}}
{{- $_ := unset $config.service.pipelines . -}}
{{- end -}}
{{- end -}}
{{- mustMergeOverwrite $config (deepCopy .Values.gateway.config) | toYaml -}}
{{- end -}}

{{- /* hostFolders are what is read of the node. Not all of /sys: what is mounted below it, such as tracefs, stays out.
The names of links in /var/log/containers name the pods: the logs themselves are elsewhere. */ -}}
{{- define "stallspan.hostFolders" -}}
- {name: proc, path: /proc}
- {name: sys-block, path: /sys/block}
- {name: sys-bus, path: /sys/bus}
- {name: sys-class, path: /sys/class}
- {name: sys-dev, path: /sys/dev}
- {name: sys-devices, path: /sys/devices}
- {name: cgroup, path: /sys/fs/cgroup}
- {name: pod-names, path: /var/log/containers}
{{- end -}}
