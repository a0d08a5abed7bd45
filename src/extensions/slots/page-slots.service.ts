import { Injectable } from '@nestjs/common';
import {
  Accounts,
  card,
  DecoratedMethods,
  type Html,
  PageParts,
  type SlotPlace,
  type SlotRequest,
} from '../../extension.js';
import { PageSlotMarker } from './page-slot.decorator.js';

const ACTIONS = { read: 'discover', execute: 'call', publish: 'publish', write: 'manage' } as const;

@Injectable()
export class PageSlotsService extends PageParts {
  constructor(
    private readonly decoratedMethods: DecoratedMethods,
    private readonly accounts: Accounts,
  ) {
    super();
  }

  async find(place: SlotPlace, request: SlotRequest): Promise<((token: Html) => Html)[]> {
    const slots = this.decoratedMethods.find(PageSlotMarker).filter(({ options }) => options.place === place);
    const parts: ((token: Html) => Html)[] = [];
    for (const [at, { options, call }] of slots.entries()) {
      if (!(await this.mayRead(place, request, options.rule))) continue;
      const part = (await call(request)) as Html | ((token: Html) => Html) | null;
      if (!part) continue;
      parts.push((token) => {
        const content = typeof part === 'function' ? part(token) : part;
        return options.title === undefined ? content : card(`part-${at}`, options.title, content);
      });
    }
    return parts;
  }

  private async mayRead(place: SlotPlace, { person, target }: SlotRequest, rule: string): Promise<boolean> {
    if (!target) return true;
    const operation = rule.slice(rule.lastIndexOf(':') + 1);
    const action = Object.hasOwn(ACTIONS, operation) ? ACTIONS[operation as keyof typeof ACTIONS] : 'manage';
    const [namespace, name = ''] = target.name.split('/');
    return this.accounts.may(person, action, { kind: place === 'connection' ? place : 'server', namespace, name });
  }
}
