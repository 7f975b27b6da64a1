#!/bin/bash
# FedBCD's table 1 and the price of A(DP)2SGD's, on a GPU: not run yet, for want of a loan.
#
#     OUT=FOLDER STALESIM_DATA=DATA evidence/studies/gpu/papers.sh STEP...
#
# Steps: adam (2 min, a guess), sgd (4 min), kept (1 min), price (3 min), pair (hours). Each writes to $OUT when it
# ends or is killed at its limit (LIMIT, default 540 s), and goes on from there if the folder of before is given as
# BEFORE. DATA has mnist/ and cifar10_jpeg/. A folder of results is taken in by `python -m evidence.generate`, once
# the file of its study is moved to scenarios/fedbcd and listed in evidence/rows.csv.
set -u
HERE=$(dirname "$0")
LIMIT=${LIMIT:-540}
export PYTHONUNBUFFERED=1
[ -n "${BEFORE:-}" ] && for old in "$BEFORE"/*.tar.gz; do tar xzf "$old" -C /tmp; done

# play NAME FILE OPTIONS...: runs a study, or goes on with it, and packs what there is.
play() {
    local name=$1 file=$2
    shift 2
    local begun=$SECONDS
    timeout "$LIMIT" stalesim run "$file" --no-plots --checkpoint 60 -o "/tmp/$name" "$@" 2>&1 | tee "$OUT/$name.txt"
    echo "$name: $((SECONDS - begun)) s" | tee -a "$OUT/seconds.txt"
    tar czf "$OUT/$name.tar.gz" -C /tmp "$name"
}

# One network of the paper's nine at the published setting, on all of CIFAR-10 (through JPEG).
FULL=(-s problem.data.kind=cifar10_jpeg -s problem.model.name=shufflenet_v2 -s 'sweep={}' -s 'variants={}'
    -s 'claims=[]' -s algorithm.noise.sigma=2 -s 'privacy=null')

for step in "$@"; do
    case $step in
    adam) play adam "$HERE/mnist_cnn_adam.yaml" ;;
    sgd) play sgd "$HERE/mnist_cnn_sgd.yaml" ;;
    # eta_0 of FedSGD's best run, kept for all Q: ETA from step sgd's choices.csv.
    kept) play kept "$HERE/mnist_cnn_sgd.yaml" -s 'compare=null' -s "algorithm.step_size.value=$ETA" \
        -s "variants.fedsgd.algorithm.step_size.value=$ETA" -s name=fedbcd-mnist-cnn-kept ;;
    # 500 mini-batches of 256: times 117 is a run of 300 epochs; compiling is in it, so that the second is the price.
    price)
        play price-adp adp2sgd/table1_full "${FULL[@]}" -s stop.epochs=2.56
        play price-sync adp2sgd/table1_full "${FULL[@]}" -s stop.epochs=2.56 -s protocol.average=all
        play price-adp-5 adp2sgd/table1_full "${FULL[@]}" -s stop.epochs=5.12
        ;;
    pair)
        play pair-adp adp2sgd/table1_full "${FULL[@]}"
        play pair-sync adp2sgd/table1_full "${FULL[@]}" -s protocol.average=all
        ;;
    *) echo "steps are adam, sgd, kept, price and pair, got $step" && exit 1 ;;
    esac
done
