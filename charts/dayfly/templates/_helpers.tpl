{{- define "dayfly.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* At most 45 characters: the longest name made of it, "-servicemonitor" aside, is still a DNS label. */}}
{{- define "dayfly.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 45 | trimSuffix "-" }}
{{- else if contains (include "dayfly.name" .) .Release.Name }}
{{- .Release.Name | trunc 45 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "dayfly.name" .) | trunc 45 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "dayfly.selector" -}}
app.kubernetes.io/name: {{ include "dayfly.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: spawner
{{- end }}

{{- define "dayfly.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
app.kubernetes.io/name: {{ include "dayfly.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: dayfly
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "dayfly.account" -}}
{{- default (ternary (include "dayfly.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name }}
{{- end }}

{{- define "dayfly.runnerAccount" -}}
{{- with .Values.runner.serviceAccount }}
{{- default (ternary (printf "%s-runner" (include "dayfly.fullname" $)) "default" .create) .name }}
{{- end }}
{{- end }}

{{- define "dayfly.operator" -}}
{{- if eq .Values.shape "operator" }}true{{ end }}
{{- end }}

{{- define "dayfly.stepNamespace" -}}
{{- default (printf "%s-steps" (trunc 57 .Release.Namespace)) .Values.steps.namespace }}
{{- end }}

{{/* Where pods of steps may be, a list: steps that began beside the service end there. */}}
{{- define "dayfly.stepNamespaces" -}}
{{- list (include "dayfly.stepNamespace" .) .Release.Namespace | uniq | toJson }}
{{- end }}

{{/* Steps have a namespace of their own. */}}
{{- define "dayfly.apart" -}}
{{- if ne (include "dayfly.stepNamespace" .) .Release.Namespace }}true{{ end }}
{{- end }}

{{/* Pods of steps, as the spawner labels them: peers of a policy */}}
{{- define "dayfly.stepPods" -}}
{{- range include "dayfly.stepNamespaces" . | fromJsonArray }}
- namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ . }}}}
  podSelector: {matchLabels: {app.kubernetes.io/name: dayfly-runner, app.kubernetes.io/managed-by: dayfly}}
{{- end }}
{{- end }}

{{/* Pods that serve the API */}}
{{- define "dayfly.serving" -}}
{{- if .Values.workload.enabled }}{{ include "dayfly.selector" . }}{{ else }}{{ toYaml .Values.service.selector }}{{ end }}
{{- end }}

{{/* Is the engine tekton on? `auto`: if the cluster serves its resources now */}}
{{- define "dayfly.tekton" -}}
{{- $enabled := .Values.engines.tekton.enabled | toString }}
{{- if or (eq $enabled "true") (and (eq $enabled "auto") (.Capabilities.APIVersions.Has "tekton.dev/v1/PipelineRun")) }}true{{ end }}
{{- end }}

{{/* What the spawner does with Jobs of steps, in their namespace */}}
{{- define "dayfly.stepRules" -}}
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, delete]
# Why a step does not start, and how it ended.
- apiGroups: [""]
  resources: [events]
  verbs: [list, watch]
# A pod whose runner never claimed its step has nothing to store, and is deleted without its grace period.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, delete]
# What workflows print, for their logs.
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
# A plugin cache is mounted from a claim if there is one.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get]
# What its Pod Security Standard is, for `dayfly doctor`.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
{{- if .Values.engines.ansible.apiUrl }}
# Those that workflows name: they become credentials and variables of AWX.
- apiGroups: [""]
  resources: [secrets, configmaps]
  verbs: [get]
{{- end }}
{{- if include "dayfly.tekton" . }}
# patch: a run is canceled by spec.status.
- apiGroups: [tekton.dev]
  resources: [pipelineruns]
  verbs: [get, list, watch, create, patch, delete]
# Which task failed, and how.
- apiGroups: [tekton.dev]
  resources: [taskruns]
  verbs: [list, watch]
{{- end }}
{{- if not (include "dayfly.operator" .) }}
# What becomes of a step, told on its Job.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}
{{- end }}

{{/* image values and the chart's appVersion: a reference */}}
{{- define "dayfly.image" -}}
{{- $tag := default .version .image.tag }}
{{- if .image.digest }}{{ .image.repository }}@{{ .image.digest }}{{ else }}{{ .image.repository }}:{{ $tag }}{{ end }}
{{- end }}

{{- define "dayfly.host" -}}
{{ include "dayfly.fullname" . }}.{{ .Release.Namespace }}.svc
{{- end }}

{{/* Runners may reach a port of the Service only where it is; they are told its name. */}}
{{- define "dayfly.url" -}}
{{- default (printf "https://%s:%v" (include "dayfly.host" .) .Values.service.port) .Values.advertiseUrl }}
{{- end }}

{{- define "dayfly.accounts" -}}
{{- $accounts := dict (printf "%s/%s-test" .Release.Namespace (include "dayfly.fullname" .)) "write" }}
{{- if .Values.auth.adminAccount.create }}
{{- $_ := set $accounts (printf "%s/%s-admin" .Release.Namespace (include "dayfly.fullname" .)) "admin" }}
{{- end }}
{{- mustMergeOverwrite $accounts (deepCopy .Values.auth.serviceAccounts) | toYaml }}
{{- end }}

{{- define "dayfly.tls" -}}
{{- if .Values.tls.existingSecret -}}
certFile: /etc/dayfly/tls/tls.crt
keyFile: /etc/dayfly/tls/tls.key
caFile: /etc/dayfly/tls/ca.crt
{{- else -}}
secret: {{ include "dayfly.fullname" . }}-authority
names:
  - {{ include "dayfly.host" . }}
  - {{ include "dayfly.host" . }}.cluster.local
  - {{ include "dayfly.fullname" . }}.{{ .Release.Namespace }}
  - {{ include "dayfly.fullname" . }}
{{- range .Values.tls.names }}
  - {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* The Secret whose ca.crt clients are to trust. */}}
{{- define "dayfly.caSecret" -}}
{{- default (printf "%s-authority" (include "dayfly.fullname" .)) .Values.tls.existingSecret }}
{{- end }}

{{- define "dayfly.placement" -}}
{{- $p := dict "serviceAccountName" (include "dayfly.runnerAccount" .) "imagePullPolicy" .Values.runner.image.pullPolicy }}
{{- with .Values.runner.imagePullSecrets }}{{- $_ := set $p "imagePullSecrets" . }}{{- end }}
{{- mustMergeOverwrite $p (deepCopy .Values.runner.placement) | toYaml }}
{{- end }}

{{/* The settings of Terrakube's executor: a list of envFrom */}}
{{- define "dayfly.terrakubeEnv" -}}
{{- $from := list }}
{{- if .Values.terrakube.enabled }}
{{- range .Values.terrakube.configMaps }}{{- $from = append $from (dict "configMapRef" (dict "name" .)) }}{{- end }}
{{- range .Values.terrakube.secrets }}{{- $from = append $from (dict "secretRef" (dict "name" .)) }}{{- end }}
{{- end }}
{{- toJson $from }}
{{- end }}

{{/* What belongs to the release itself: no step gets it. */}}
{{- define "dayfly.never" -}}
serviceAccounts: {{ list (include "dayfly.account" .) (printf "%s-admin" (include "dayfly.fullname" .)) | toJson }}
secrets: {{ compact (concat (list .Values.auth.tokenSecret .Values.tls.existingSecret .Values.stateService.tokenSecret .Values.blobs.keySecret .Values.engines.ansible.tokenSecret) (ternary .Values.terrakube.secrets list .Values.terrakube.enabled)) | toJson }}
{{- $data := ternary "" (default (printf "%s-data" (include "dayfly.fullname" .)) .Values.persistence.existingClaim) (ne (include "dayfly.operator" .) "") }}
{{- $mirror := dig "persistentVolumeClaim" "claimName" "" .Values.providers.mirror.volume }}
{{- with compact (list $data $mirror) }}
claims: {{ toJson . }}
{{- end }}
{{- end }}

{{/* Blobs go to another place when the service starts: replicas that use the old one end before, and it may take hours. */}}
{{- define "dayfly.moves" -}}
{{- if dig "blobs" "move" false .Values.config }}true{{ end }}
{{- end }}

{{- define "dayfly.config" -}}
{{- if and .Values.blobs.keySecret (not (dig "blobs" "location" "" .Values.config)) }}{{ fail "blobs.keySecret: its keys seal what is in a bucket: set config.blobs.location" }}{{ end }}
{{- $file := tpl (.Files.Get "files/dayfly.yaml") . | fromYaml }}
{{- $config := mustMergeOverwrite $file (deepCopy .Values.config) }}
{{- range $name, $class := $config.classes }}
{{- $min := dig "standby" "min" 0 (default dict $class) | int }}{{- $max := dig "standby" "max" $min (default dict $class) | int }}
{{- if lt $max $min }}{{ fail (printf "runner.classes.%s.standby: max is %d and min is %d; it must not be less" $name $max $min) }}{{ end }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{/* One command of the test's pod: root, step, args */}}
{{- define "dayfly.test" -}}
- name: {{ .step }}
  image: {{ include "dayfly.image" (dict "image" .root.Values.image "version" .root.Chart.AppVersion) }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args: {{ concat (list "--server" (include "dayfly.url" .root) "--ca-file" "/access/ca.crt" "--token-file" "/access/token") .args | toJson }}
  securityContext: {{- toYaml .root.Values.securityContext | nindent 4 }}
  volumeMounts:
    - {name: test, mountPath: /test, readOnly: true}
    - {name: access, mountPath: /access, readOnly: true}
{{- end }}
