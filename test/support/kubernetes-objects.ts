import { createRequire } from 'node:module';

/** The part of a pod that the tests read. */
export interface PodSpec {
  automountServiceAccountToken?: boolean;
  securityContext?: object;
  initContainers?: Container[];
  containers: Container[];
  volumes?: { name: string; emptyDir?: { sizeLimit?: string } }[];
}
export interface Container {
  name: string;
  image: string;
  command?: string[];
  envFrom: { secretRef?: { name: string }; configMapRef?: { name: string } }[];
  env?: { name: string; value?: string; valueFrom?: { fieldRef: { fieldPath: string } } }[];
  securityContext?: object;
}
export interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; annotations?: Record<string, string> };
  spec: { template?: { spec: PodSpec }; jobTemplate?: { spec: { template: { spec: PodSpec } } } };
  /** Of a ConfigMap or, in base64, of a Secret. */
  data?: Record<string, string>;
}
type Model = new (content: object) => { validate(): void };

const require = createRequire(import.meta.url);

/** The class with the schema of an object, from Kubernetes' or the Prometheus operator's own definitions. */
export function modelOf({ apiVersion, kind }: KubernetesObject): Model {
  const models = apiVersion.startsWith('monitoring.') ? '@kubernetes-models/prometheus-operator' : 'kubernetes-models';
  return (require(`${models}/${apiVersion}/${kind}`) as Record<string, Model>)[kind];
}

/** The pods of these objects, each with the name of what starts it. */
export function podsOf(objects: KubernetesObject[]): { name: string; pod: PodSpec }[] {
  return objects.flatMap(({ metadata, spec }) => {
    const template = spec?.template ?? spec?.jobTemplate?.spec.template;
    return template ? [{ name: metadata.name, pod: template.spec }] : [];
  });
}

/** Names of the secrets whose values a pod has. */
export function secretsOf(pod: PodSpec): string[] {
  return pod.containers[0].envFrom.flatMap(({ secretRef }) => secretRef?.name ?? []);
}
