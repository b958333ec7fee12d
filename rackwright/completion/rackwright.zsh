#compdef rackwright
# zsh completion of rackwright; made by: rackwright completion zsh

_rackwright() {
    local -a lines
    lines=("${(@f)$("${words[1]/#\~/$HOME}" completion answer zsh -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    local files=${lines[1]:-none}
    local -a found
    found=("${(@)lines[2,-1]}")
    if (( $#found )); then
        if [[ -z ${found[(r)^*=(|:*)]} ]]; then
            _describe -t values rackwright found -S ''
        else
            _describe -t values rackwright found
        fi
    fi
    [[ $PREFIX == -*=* ]] && compset -P '*='
    case $files in
        any) _files ;;
        yaml) _files -g '*.(yaml|yml)' ;;
        folders) _files -/ ;;
    esac
}

if [[ $funcstack[1] == _rackwright ]]; then
    _rackwright "$@"
else
    compdef _rackwright rackwright
fi
