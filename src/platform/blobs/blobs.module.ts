import path from 'node:path';
import { Global, Module } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { BlobStore } from './blob-store.js';
import { StorageSpace } from './storage-space.js';
import { DiskBlobStore } from './disk-blob-store.js';
import { S3BlobStore } from './s3-blob-store.js';

/** Files by content hash: in S3, or in the data folder, which processes of one service then share. */
@Global()
@Module({
  providers: [StorageSpace, { provide: BlobStore, inject: [Env], useFactory: blobStore }],
  exports: [BlobStore, StorageSpace],
})
export class BlobsModule {}

/** Where the settings keep files. */
export function blobStore({ blobUrl, dataDir }: Env): BlobStore {
  if (blobUrl) return new S3BlobStore(blobUrl, path.join(dataDir, 'cache', 'blobs'));
  return new DiskBlobStore(path.join(dataDir, 'blobs'));
}
