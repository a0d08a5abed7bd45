import type { ReleaseDto, ReleaseLogDto } from './release.dto.js';
import type { ReleaseLog } from './release-log.entity.js';
import type { Release } from './release.entity.js';

export function toReleaseDto(release: Release, mcpUrl: string): ReleaseDto {
  return {
    id: release.id,
    status: release.status,
    type: release.type,
    createdAt: release.createdAt.toISOString(),
    updatedAt: release.updatedAt.toISOString(),
    commit: release.commit,
    commitMessage: release.commitMessage,
    branch: release.branch,
    upstreamUrl: release.upstreamUrl,
    mcpUrl,
  };
}

export function toReleaseLogDto({ stage, level, message, createdAt, error }: ReleaseLog): ReleaseLogDto {
  return {
    stage,
    level,
    message,
    timestamp: createdAt.toISOString(),
    ...(error === null ? {} : { error: { message: error } }),
  };
}
