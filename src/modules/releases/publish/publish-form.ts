import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { ClassConstructor } from 'class-transformer';
import { parseServerCard } from '../../../mcp/client/server-card.js';
import type { Blob } from '../../../platform/blobs/blob-store.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { InputPipe } from '../../../platform/http/input.pipe.js';
import { readMultipart } from '../../../platform/http/body/multipart.js';
import type { ReleaseType } from '../../servers/server.types.js';
import type { ConfigKind, ConfigSchema } from '../config/config-fields.js';
import type { job as configSchemaJob } from '../config/config-schema.job.js';
import { requireScanCredentials, credentialWarnings } from '../scan/scan-credentials.js';
import { SNAPSHOT_MB_MAX } from '../scan/server-facts.js';
import { artifactKinds, type ArtifactKind } from '../release.entity.js';
import { ExternalPayloadDto, HostedPayloadDto, StdioPayloadDto, type PublishPayloadDto } from './publish.dto.js';
import { parseBounded } from '../../../platform/text/json-bounds.js';
import { tenantThread, ThreadJobEndedError } from '../../../platform/threads/fair-thread.js';

const CONFIG_SCHEMA = 'modules/releases/config/config-schema.job.js';

const MB = 1024 * 1024;

/**
 * Bundles have the limit of published tools; a module with one tool and its dependencies has 1.4 MB, its source map 2.3
 * MB.
 */
const artifactBytesMax: Record<ArtifactKind, number> = { bundle: 25 * MB, module: 10 * MB, sourcemap: 20 * MB };

interface Kind<T extends PublishPayloadDto> {
  release: ReleaseType;
  payload: ClassConstructor<T>;
  required: readonly ArtifactKind[];
  optional: readonly ArtifactKind[];
}

const kinds = {
  external: { release: 'external_shttp', payload: ExternalPayloadDto, required: [], optional: [] },
  hosted: { release: 'hosted_shttp', payload: HostedPayloadDto, required: ['module'], optional: ['sourcemap'] },
  stdio: { release: 'stdio', payload: StdioPayloadDto, required: ['bundle'], optional: [] },
} as const satisfies Record<string, Kind<PublishPayloadDto>>;

export interface PublishForm {
  type: ReleaseType;
  payload: Partial<ExternalPayloadDto & HostedPayloadDto & StdioPayloadDto>;
  artifacts: Partial<Record<ArtifactKind, Blob>>;
  warnings: string[];
}

const input = new InputPipe();

export type KeepFile = (content: Readable, bytesMax: number) => Promise<Blob>;

/**
 * Reads a publish form: the text part `payload`, and files, which `keep` stores as they arrive, even if the form is
 * rejected afterwards.
 *
 * @param namespaceId of the server: namespaces take turns in compiling a `configSchema`
 * @throws InvalidInputError, TooLargeError
 */
export async function readPublishForm(
  request: IncomingMessage,
  keep: KeepFile,
  namespaceId: string,
): Promise<PublishForm> {
  const { fields, files } = await readMultipart<Blob>(request, {
    fields: { payload: SNAPSHOT_MB_MAX * MB },
    files: artifactKinds,
    take: (name, file) => keep(file, artifactBytesMax[name as ArtifactKind]),
  });
  return checkForm(fields.payload, files, namespaceId);
}

type Artifacts = PublishForm['artifacts'];

export type PublishFiles = Partial<Record<ArtifactKind, Uint8Array>>;

/** Works like {@link readPublishForm} for a payload and files outside a form. */
export async function toPublishForm(payload: object, files: PublishFiles, keep: KeepFile, namespaceId: string) {
  const artifacts: Artifacts = {};
  for (const kind of artifactKinds.filter((name) => files[name])) {
    artifacts[kind] = await keep(Readable.from([files[kind]]), artifactBytesMax[kind]);
  }
  return checkForm(JSON.stringify(payload), artifacts, namespaceId);
}

async function checkForm(text: string | undefined, files: Artifacts, namespaceId: string): Promise<PublishForm> {
  const parsed = parsePayload(text);
  const kind: Kind<PublishPayloadDto> = kinds[parsed.type];
  const missing = kind.required.find((part) => !Object.hasOwn(files, part));
  if (missing !== undefined) throw new InvalidInputError(`Missing required part: ${missing}`);
  const knownParts: readonly string[] = [...kind.required, ...kind.optional];
  const foreign = Object.keys(files).find((part) => !knownParts.includes(part));
  if (foreign !== undefined) throw new InvalidInputError(`A release of type ${parsed.type} has no part "${foreign}"`);
  const payload = (await input.transform(parsed.value, {
    type: 'body',
    metatype: kind.payload,
  })) as PublishForm['payload'];
  if (payload.serverCard !== undefined) payload.serverCard = parseServerCard(payload.serverCard);
  const { configSchema } = payload;
  const checked = configSchema === undefined ? null : await checkedSchema(configSchema, parsed.type, namespaceId);
  const isBundle = kind.release === 'stdio';
  const schema = checked?.schema ?? null;
  const scanCredentials = requireScanCredentials(
    payload.scanCredentials ?? {},
    schema,
    isBundle ? 'hosted' : 'external',
  );
  // The manifest of a bundle names its values; the pipeline reads it later.
  const credentialFaults = isBundle ? [] : credentialWarnings(scanCredentials, schema);
  return {
    type: kind.release,
    payload: {
      ...payload,
      ...(checked && { configSchema: checked.schema }),
      scanCredentials: payload.scanCredentials ? scanCredentials : undefined,
    },
    artifacts: files,
    warnings: [...(checked?.warnings ?? []), ...credentialFaults],
  };
}

async function checkedSchema(
  value: unknown,
  kind: ConfigKind,
  namespaceId: string,
): Promise<{ schema: ConfigSchema; warnings: string[] }> {
  const job = tenantThread.run<typeof configSchemaJob>(namespaceId, CONFIG_SCHEMA, { value, kind });
  const checked = await job.catch((error: unknown) => {
    if (!(error instanceof ThreadJobEndedError)) throw error;
    return { refusal: 'configSchema cannot be enforced: compiling it takes too long' };
  });
  if ('refusal' in checked) throw new InvalidInputError(checked.refusal);
  return checked;
}

function parsePayload(text: string | undefined): { type: keyof typeof kinds; value: object } {
  if (text === undefined) throw new InvalidInputError('Missing required part: payload');
  let value: unknown;
  try {
    value = parseBounded(text);
  } catch (error) {
    throw new InvalidInputError(`The part "payload" is not valid JSON: ${(error as Error).message}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidInputError('The part "payload" must be a JSON object');
  }
  const { type } = value as { type?: unknown };
  if (typeof type !== 'string' || !Object.hasOwn(kinds, type)) {
    throw new InvalidInputError(`type must be one of ${Object.keys(kinds).join(', ')}`);
  }
  return { type: type as keyof typeof kinds, value };
}
