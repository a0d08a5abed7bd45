import path from 'node:path';
import { Global, Module } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { BlobStore } from './blob-store.js';
import { StorageSpace } from './storage-space.js';
import { DiskBlobStore } from './disk-blob-store.js';

/** Files by content hash, in the data folder. Processes of one service must share that folder. */
@Global()
@Module({
  providers: [
    StorageSpace,
    { provide: BlobStore, inject: [Env], useFactory: (env: Env) => new DiskBlobStore(path.join(env.dataDir, 'blobs')) },
  ],
  exports: [BlobStore, StorageSpace],
})
export class BlobsModule {}
