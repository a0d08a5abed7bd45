import path from 'node:path';
import { Global, Module } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { BlobStore } from './blob-store.js';
import { egressTo } from '../egress/egress.module.js';
import { StorageSpace } from './storage-space.js';
import { DiskBlobStore } from './disk-blob-store.js';
import { S3BlobStore } from './s3-blob-store.js';

/** Processes of one service share the store, which is S3 or the data folder. */
@Global()
@Module({
  providers: [StorageSpace, { provide: BlobStore, inject: [Env], useFactory: blobStore }],
  exports: [BlobStore, StorageSpace],
})
export class BlobsModule {}

export function blobStore(env: Env): BlobStore {
  const { blobUrl, dataDir, egressProxy } = env;
  if (blobUrl) {
    const { endpoint } = blobUrl;
    // AWS endpoints inside a private network have AWS names.
    const host = endpoint === null ? '*.amazonaws.com' : new URL(endpoint).hostname;
    const egress = egressProxy === null ? null : egressTo(host, env);
    return new S3BlobStore(blobUrl, path.join(dataDir, 'cache', 'blobs'), egress);
  }
  return new DiskBlobStore(path.join(dataDir, 'blobs'));
}
