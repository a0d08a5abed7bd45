import type { ZipArchive } from '../../platform/zip/zip-archive.js';
import type { BundleRuntime } from '../servers/server.types.js';
export interface BundleFacts {
  serverInfo: { name: string; version: string } & Record<string, unknown>;
  runtime: BundleRuntime;
  tools: Record<string, unknown>[];
  isComplete: boolean;
  prompts: Record<string, unknown>[] | null;
  configSchema: Record<string, unknown>;
}
export async function readBundle(_zip: ZipArchive): Promise<BundleFacts> {
  throw new Error('stub');
}
