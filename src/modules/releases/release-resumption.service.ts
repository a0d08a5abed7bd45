import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Repository } from 'typeorm';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { AccessService } from '../auth/access.service.js';
import type { Person } from '../auth/access.types.js';
import { CredentialsService } from '../oauth/credentials.service.js';
import type { CredentialOwners } from '../oauth/credentials.types.js';
import type { ServerRef } from '../servers/server.types.js';
import { ServersService, type ServerDeletion } from '../servers/servers.service.js';
import type { ResumedReleaseDto } from './release.dto.js';
import { Release } from './release.entity.js';
import { isResumable, statusesBefore, type ReleaseStatus } from './release-state.js';
import { ReleasesQueue } from './releases.queue.js';
import { ReleasesRepository } from './releases.repository.js';
import { ReleasesService } from './releases.service.js';

/** Time in which a client can repeat a resume whose response it lost. */
const RESUME_REPEAT_MS = 60_000;

@Injectable()
export class ReleaseResumptionService implements CredentialOwners, ServerDeletion {
  constructor(
    @InjectRepository(Release) private readonly releaseRepository: Repository<Release>,
    private readonly releasesService: ReleasesService,
    private readonly releasesRepository: ReleasesRepository,
    private readonly releasesQueue: ReleasesQueue,
    private readonly pubSub: PubSub,
    private readonly credentialsService: CredentialsService,
    private readonly serversService: ServersService,
    private readonly accessService: AccessService,
  ) {}

  prepareDeletion({ id }: ServerRef): Promise<void> {
    return this.credentialsService.remove({ kind: 'server', id });
  }

  /** Returns true while a release waits or is about to wait; the links of cancelled releases are no longer valid. */
  isAuthorizationPending(serverId: string): Promise<boolean> {
    return this.releaseRepository.existsBy({ serverId, status: In(statusesBefore('CANCELLED')) });
  }

  /** Returns true for the owner. Grants are not enough: an authorization applies to all callers of the server. */
  async mayAuthorize(serverId: string, person: Person): Promise<boolean> {
    const server = await this.serversService.findRunnable({ id: serverId });
    return (
      server !== null &&
      this.accessService.isAllowed(person, 'manage', { ownerId: server.ownerId, namespace: server.namespace })
    );
  }

  presentation(serverId: string): ReturnType<CredentialOwners['presentation']> {
    return this.serversService.presentation(serverId);
  }

  async handleAuthorization(serverId: string): Promise<void> {
    const newest = await this.releaseRepository.findOne({ where: { serverId }, order: { seq: 'DESC' } });
    if (newest && isResumable(newest.status)) await this.continue(newest.id);
  }

  /**
   * Resumes a release (Spec 4.7). One of several concurrent requests resumes the release, but all succeed, as does one that
   * is repeated within 60 s.
   *
   * @param id the release's id, or `latest`
   * @throws NotFoundError, InvalidInputError for a release that does not wait
   */
  async resume(server: ServerRef, id: string): Promise<ResumedReleaseDto> {
    const { id: deploymentId, status, attempt, updatedAt } = await this.releasesService.find(server, id);
    const answer = { status: 'WORKING', deploymentId };
    // The release runs again, after a resume or a wait.
    const isRepeated = status === 'WORKING' && attempt > 1 && Date.now() - updatedAt.getTime() < RESUME_REPEAT_MS;
    if (isRepeated) return answer;
    if (!isResumable(status)) throw notResumable(status);
    if (await this.continue(deploymentId)) return answer;
    const now = await this.releasesService.find(server, deploymentId);
    if (now.status === 'CANCELLED') throw notResumable(now.status);
    return answer;
  }

  /** @returns false if the release did not wait for authorization */
  private async continue(releaseId: string): Promise<boolean> {
    const attempt = await this.releasesRepository.resume(releaseId);
    if (attempt === null) return false;
    this.pubSub.publish('releases.changed', { id: releaseId });
    this.releasesQueue.enqueue({ releaseId, attempt });
    return true;
  }
}

function notResumable(status: ReleaseStatus): InvalidInputError {
  return new InvalidInputError(
    `Release is not in a resumable state: it is ${status}, and only AUTH_REQUIRED and AUTH_TIMEOUT can be resumed`,
  );
}
