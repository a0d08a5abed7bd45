import type { ContractChangeDto, ContractVersionDto } from './contract-changes.dto.js';
import type { ContractChange } from './contract-change.js';
import type { ReleaseContract } from './release-contract.entity.js';

export function toContractVersionDto(row: ReleaseContract): ContractVersionDto {
  return {
    releaseId: row.releaseId,
    previousReleaseId: row.previousReleaseId,
    foundBy: row.foundBy,
    at: row.at.toISOString(),
    hash: row.hash,
    summary: row.summary,
    changeCount: row.changeCount,
    changes: row.changes.map(toContractChangeDto),
  };
}

function toContractChangeDto({ kind, level, tool, path, message }: ContractChange): ContractChangeDto {
  return { kind, level, tool, path, message };
}
