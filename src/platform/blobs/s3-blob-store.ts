/**
 * Objects of an S3 bucket (`BLOB_URL`), named by prefix and content hash. Credentials come from the environment, as
 * AWS's own tools read them.
 *
 * An upload passes a local folder, since the hash that names an object is known only at the end of its content, and
 * succeeds when the stored size is the one sent.
 *
 * A missing object is null. Everything else is an UnavailableError (503, try again), including a missing bucket if the
 * server names it.
 */
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type * as Sdk from '@aws-sdk/client-s3';
import type { S3Place } from '../../config/setting.js';
import { UnavailableError } from '../errors/domain-error.js';
import type { Egress } from '../egress/egress.js';
import { lazyRequire } from '../lazy-require.js';
import { BlobStore, type Blob, isBlobHash } from './blob-store.js';
import { UploadFolder } from './upload-folder.js';

const sdk = lazyRequire<typeof Sdk>('@aws-sdk/client-s3');

const REQUEST_MS = 60_000;
const CONNECT_MS = 5_000;

const RETRY_AFTER_SECONDS = 5;

const ignore = () => undefined;

export class S3BlobStore extends BlobStore {
  private readonly client: Sdk.S3Client;
  private readonly uploads: UploadFolder;

  /**
   * @param folder local folder for uploads and for the files of `withFile`
   * @param egress opens the connections to S3; null: the SDK does
   */
  constructor(
    private readonly place: S3Place,
    private readonly folder: string,
    egress: Egress | null = null,
  ) {
    super();
    const { region, endpoint } = place;
    this.uploads = new UploadFolder(folder);
    this.client = new (sdk().S3Client)({
      ...(region && { region }),
      // Servers other than AWS's have one address for all buckets, and their regions have no meaning.
      ...(endpoint && { endpoint, forcePathStyle: true, region: region ?? 'us-east-1' }),
      // Not all S3 services know the newer checksums.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      // Otherwise warnings go to the console; the error that follows is more specific.
      logger: { debug: ignore, info: ignore, warn: ignore, error: ignore },
      requestHandler: { connectionTimeout: CONNECT_MS, requestTimeout: REQUEST_MS, ...(egress && agentsOf(egress)) },
    });
  }

  put(content: Readable, bytesMax: number): Promise<Blob> {
    return this.uploads.receive(content, bytesMax, async (file, { hash, bytes }) => {
      const { PutObjectCommand } = sdk();
      const body = { Body: createReadStream(file), ContentLength: bytes };
      await this.client.send(new PutObjectCommand({ ...this.object(hash), ...body })).catch(unusable);
      const stored = await this.head(hash);
      if (stored?.ContentLength === bytes) return;
      unusable(new Error(`${bytes} bytes were sent and ${stored?.ContentLength ?? 0} are stored`));
    });
  }

  async open(hash: string): Promise<Readable | null> {
    const { GetObjectCommand } = sdk();
    const response = await this.client.send(new GetObjectCommand(this.object(hash))).catch(nullIfMissing);
    return response && (response.Body as Readable);
  }

  async has(hash: string): Promise<boolean> {
    return (await this.head(hash)) !== null;
  }

  async withFile<T>(hash: string, read: (path: string) => Promise<T>): Promise<T> {
    const content = await this.open(hash);
    if (!content) throw new Error(`The file storage has no object ${hash}`);
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const file = this.uploads.newFile();
    try {
      await pipeline(content, createWriteStream(file, { flags: 'wx', mode: 0o600 })).catch(unusable);
      return await read(file);
    } finally {
      await rm(file, { force: true });
    }
  }

  removeUnfinished(before: Date): Promise<void> {
    return this.uploads.sweep(before);
  }

  async *list(before: Date): AsyncIterable<string> {
    const { paginateListObjectsV2 } = sdk();
    const { bucket: Bucket, prefix: Prefix } = this.place;
    for await (const { Contents } of paginateListObjectsV2({ client: this.client }, { Bucket, Prefix })) {
      for (const { Key = '', LastModified } of Contents ?? []) {
        const name = path.posix.basename(Key);
        if (isBlobHash(name) && LastModified && LastModified < before) yield name;
      }
    }
  }

  async delete(hash: string): Promise<void> {
    const { DeleteObjectCommand } = sdk();
    await this.client.send(new DeleteObjectCommand(this.object(hash))).catch(unusable);
  }

  private head(hash: string): Promise<Sdk.HeadObjectCommandOutput | null> {
    const { HeadObjectCommand } = sdk();
    return this.client.send(new HeadObjectCommand(this.object(hash))).catch(nullIfMissing);
  }

  private object(hash: string) {
    if (!isBlobHash(hash)) throw new Error('A blob is named by 64 hex digits');
    return { Bucket: this.place.bucket, Key: `${this.place.prefix}${hash}` };
  }
}

/** Returns agents whose sockets `egress` opens. */
function agentsOf(egress: Egress): { httpAgent: HttpAgent; httpsAgent: HttpsAgent } {
  const dialled =
    (protocol: string): HttpAgent['createConnection'] =>
    ({ host, port }, callback) => {
      egress.open(new URL(`${protocol}//${host}:${port}`)).then(
        (socket) => callback?.(null, socket),
        (error: Error) => callback?.(error, null as never),
      );
      return null;
    };
  return {
    httpAgent: Object.assign(new HttpAgent({ keepAlive: true }), { createConnection: dialled('http:') }),
    httpsAgent: Object.assign(new HttpsAgent({ keepAlive: true }), { createConnection: dialled('https:') }),
  };
}

/** @throws UnavailableError always */
function unusable(error: unknown): never {
  throw new UnavailableError(
    'The file storage of this service cannot be used at the moment: try again.',
    RETRY_AFTER_SECONDS,
    error,
  );
}

/** @throws UnavailableError for other errors, including a missing bucket if the response names it */
function nullIfMissing(error: unknown): null {
  const { name, $metadata } = error as Sdk.S3ServiceException;
  if ($metadata?.httpStatusCode === 404 && name !== 'NoSuchBucket') return null;
  return unusable(error);
}
