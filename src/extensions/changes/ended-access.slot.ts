import { Injectable } from '@nestjs/common';
import { html, type Html, list, PageSlot, type SlotRequest, timeOf } from '../../extension.js';
import { ChangesRepository } from './changes.repository.js';

/** Shows on the first page which access of the person was revoked or has expired. */
@Injectable()
export class EndedAccessSlot {
  constructor(private readonly changesRepository: ChangesRepository) {}

  @PageSlot({ place: 'home', title: 'Ended in the last 14 days', rule: 'accounts:read' })
  async show({ person }: SlotRequest): Promise<Html | null> {
    const ended = await this.changesRepository.findEnded(person.accountId);
    if (ended.length === 0) return null;
    return list(
      ended.map(({ target, owner, endedAt }) => [
        target === null
          ? html`Your membership in <b>${owner}</b> ended, ${timeOf(endedAt.toISOString())}.`
          : html`Your access to <code>${target}</code> of <b>${owner}</b> ended, ${timeOf(endedAt.toISOString())}.`,
      ]),
    );
  }
}
