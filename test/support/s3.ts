import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface S3rverOptions {
  address: string;
  port: number;
  silent: boolean;
  directory: string;
  vhostBuckets: boolean;
  configureBuckets: { name: string }[];
}

const S3rver = createRequire(import.meta.url)('s3rver') as new (options: S3rverOptions) => {
  run(): Promise<AddressInfo>;
  close(): Promise<void>;
};

const BUCKET = 'files';

/** Credentials of S3 clients that are made from now on; the environment is restored after the test file. */
export function setS3Credentials(keyId: string, secret: string): void {
  process.env.AWS_ACCESS_KEY_ID = keyId;
  process.env.AWS_SECRET_ACCESS_KEY = secret;
}

/** An S3 server on loopback with one bucket, by the npm package `s3rver`. Its credentials are set in the environment. */
export async function startS3(): Promise<{ blobUrl: string; close: () => Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 'slipway-s3-'));
  const configureBuckets = [{ name: BUCKET }];
  const server = new S3rver({
    ...{ address: '127.0.0.1', port: 0, silent: true, directory, configureBuckets },
    // Else another host name than its own would be a bucket.
    vhostBuckets: false,
  });
  const { port } = await server.run();
  setS3Credentials('S3RVER', 'S3RVER');
  return {
    blobUrl: `s3://${BUCKET}/slipway?endpoint=${encodeURIComponent(`http://127.0.0.1:${port}`)}`,
    close: async () => {
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
